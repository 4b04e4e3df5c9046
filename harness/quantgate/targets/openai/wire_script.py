"""Answers of an OpenAI-compatible server, every byte and delay given beforehand: oracles for client and metrics.

`scripted_transport` serves them in memory on any clock, exact to the nanosecond; `benchmarks/scripted_server.py` serves
the same scripts over real sockets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from quantgate.targets.openai.transport import Breakage

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """How one request is served, from the moment a slot is free for it.

    parts: wait before each (ns) and its bytes, the first after the head. refused: there is no answer but this failure.
    cut: after the last part the connection breaks instead of ending.
    """

    parts: tuple[tuple[int, bytes], ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    refused: Breakage | None = None
    cut: Breakage | None = None


def event(document: Any) -> bytes:
    """One event of a stream, its document as JSON in UTF-8."""
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


def completion(text: str, *, finish_reason: str | None = None, **fields: Any) -> bytes:
    """One chunk of a streamed completion; `fields` are further fields of its choice."""
    return event({"choices": [{"index": 0, "text": text, "finish_reason": finish_reason, **fields}]})


def chat_delta(finish_reason: str | None = None, fields: Mapping[str, Any] | None = None, **delta: Any) -> bytes:
    """One chunk of a streamed chat answer; `fields` are further fields of its choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, **(fields or {})}
    return event({"choices": [choice]})


def usage(prompt_tokens: int, completion_tokens: int) -> bytes:
    """The last chunk of a stream whose client asked for usage."""
    return event({"choices": [], "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}})


def models(*ids: str, **fields: Any) -> WireAnswer:
    """The answer of /v1/models; `fields` are further fields of each entry."""
    entries = [{"id": model, "object": "model", **fields} for model in ids]
    return WireAnswer(((0, json.dumps({"object": "list", "data": entries}).encode()),))


def steady(delays_ns: tuple[int, ...], *, prompt_tokens: int = 4) -> WireAnswer:
    """A completion of one token a chunk, each after its delay, ended by the length limit."""
    last = len(delays_ns) - 1
    tokens = [
        (delay_ns, completion(f"w{index} ", finish_reason="length" if index == last else None))
        for index, delay_ns in enumerate(delays_ns)
    ]
    return WireAnswer((*tokens, (0, usage(prompt_tokens, len(delays_ns)) + DONE)))
