"""One usable row of a request log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quantgate.traces.record import Message

OutputLengthFrom = Literal["usage", "answer", "answer_characters", "limit"]
"""Where the output's length comes from, best first: what the server counted; the recorded answer under the run's
tokenizer; the answer's characters; the most that the request allowed."""


@dataclass(frozen=True, slots=True)
class LogRow:
    """Times are nanoseconds on the log's clock; `end_ns` is None where the log does not tell when the answer ended.

    `session` and `user` are the log's own words, which no result repeats.
    """

    line: int
    request_id: str
    start_ns: int
    end_ns: int | None
    messages: tuple[Message, ...] | None
    prompt_text: str | None
    answer: Message | None
    output_tokens: int
    output_length_from: OutputLengthFrom
    limit_tokens: int | None
    prompt_tokens: int | None
    slo_class: str
    tags: tuple[str, ...]
    session: str | None
    user: str | None
    offered_tools: bool
    several_answers: bool
