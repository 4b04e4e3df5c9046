"""What is known of a request that crossed a network once it has ended: attempts, errors by kind, tokens by chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ErrorKind = Literal[
    "connect", "timeout", "status_4xx", "status_429", "status_5xx", "early_close", "malformed_event", "server_error",
    "empty_answer",
]  # fmt: skip
"""Why a request failed: no connection; silence for too long; refused by status; the stream ended without its end; an
event that is no JSON or lacks its fields; an error that the server reported inside the stream; an answer that came to
its end without a token, where at least one was asked for."""

TokenCounting = Literal["engine", "ids", "logprobs", "usage", "retokenized", "spread", "chunks"]
"""Where the count of tokens per chunk comes from, best first: the engine itself; token ids or log-probs that the server
sent with each chunk; the server's usage, where it equals the number of chunks; the text tokenized again; the server's
total, spread over the chunks by length of text; or nothing better than counting each chunk as one token."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """attempts: requests sent, the first included. prompt_tokens, cached_prompt_tokens: as the server's usage says.

    token_ids: of the whole answer, reasoning included; empty where nobody knows them. tokens_per_event: one entry for
    each event that carried text, in order. overhead_ns: the longest time between a chunk's bytes reaching this process
    and the event being handed on (None: not measured).
    """

    attempts: int = 1
    http_status: int | None = None
    error_kind: ErrorKind | None = None
    prompt_tokens: int | None = None
    cached_prompt_tokens: int | None = None
    completion_tokens: int | None = None
    token_ids: tuple[int, ...] = ()
    tokens_per_event: tuple[int, ...] = ()
    counted_by: TokenCounting = "chunks"
    overhead_ns: int | None = None
