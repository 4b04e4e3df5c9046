"""One request as a trace tells it, before any transform."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from quantgate.traces.prompt_blocks import PromptBlocks


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """One recorded request.

    At most one of `messages`, `prompt_text` and `prompt_token_ids` says what was asked. `prompt_token_count` beside a
    text is what the recording server counted, under its own tokenizer; alone (traces without text) it is filled with
    synthetic tokens of that number when the plan is made, blocks of equal ids (`prompt_blocks`) with equal ones.
    `max_tokens` is how many tokens the recorded answer had, `limit_tokens` how many the request allowed, where the
    trace tells both. `scheduled_ns` counts from the trace's start. For turn k > 1 of a session the driver schedules the
    request at the previous answer's finish plus `think_time_ns`. The client leaves after so many tokens, or so long
    after sending, whichever is first, and reads at `read_tokens_per_s` at most; None: never, and at once.
    """

    request_id: str
    scheduled_ns: int
    max_tokens: int
    messages: tuple[Message, ...] | None = None
    prompt_text: str | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    prompt_token_count: int | None = None
    prompt_blocks: PromptBlocks | None = None
    slo_class: str = "interactive"
    session_id: str | None = None
    turn: int = 1
    think_time_ns: int = 0
    tags: tuple[str, ...] = ()
    checker: dict[str, Any] | None = field(default=None, hash=False)
    disconnect_after_tokens: int | None = None
    disconnect_after_ns: int | None = None
    read_tokens_per_s: float | None = None
    limit_tokens: int | None = None

    @property
    def has_text(self) -> bool:
        return self.messages is not None or self.prompt_text is not None
