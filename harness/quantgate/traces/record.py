"""One request as a trace tells it, before any transform."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """One recorded request.

    Exactly one of `messages`, `prompt_text`, `prompt_token_ids` and `prompt_token_count` says what was asked;
    a count alone (traces without text) is filled with synthetic tokens of that number when the plan is made.
    `scheduled_ns` counts from the trace's start. For turn k > 1 of a session the driver schedules the request at the
    previous answer's finish plus `think_time_ns`.
    """

    request_id: str
    scheduled_ns: int
    max_tokens: int
    messages: tuple[Message, ...] | None = None
    prompt_text: str | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    prompt_token_count: int | None = None
    slo_class: str = "interactive"
    session_id: str | None = None
    turn: int = 1
    think_time_ns: int = 0
    tags: tuple[str, ...] = ()
    checker: dict[str, Any] | None = field(default=None, hash=False)
    disconnect_after_tokens: int | None = None
