"""What the engine's fronts hand out: whole outputs (LLM) and streams (AsyncLLM)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quantgate_engine.executor.base import SampledToken
from quantgate_engine.request import AbortCause, Request, RequestState


@dataclass(frozen=True, slots=True)
class EngineTimes:
    """Time points of a request on the engine's clock (ns); None where it never got there.

    arrived: the engine took it in; admitted: the scheduler first ran it; first_token and finished: its first and its
    last token were sampled.
    """

    arrived_ns: int
    admitted_ns: int | None
    first_token_ns: int | None
    finished_ns: int | None


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """A finished request.

    `text` leaves out special tokens and the token that stopped it, while `token_ids` has them. `logprobs` holds one
    entry per token of `token_ids` where the request asked for log-probabilities (natural logarithm), else it is None.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    text: str
    finish_reason: Literal["stop", "length"]
    logprobs: tuple[SampledToken, ...] | None
    timing: EngineTimes


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """How a request ended, and what it cost. `failed` is an abort by an error, which `error` tells.

    `degraded` tells in one sentence what admission cut from the request so that it could run, and `prompt_tokens` how
    many tokens its prompt then had; None where the engine broke.
    """

    status: Literal["finished", "aborted", "rejected", "failed"]
    finish_reason: str | None = None
    abort_cause: str | None = None
    error: str | None = None
    engine: EngineTimes | None = None
    preemptions: int = 0
    recomputed_tokens: int = 0
    cached_prompt_tokens: int = 0
    kv_peak_blocks: int = 0
    kv_block_seconds: float = 0.0
    degraded: str | None = None
    prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class StreamChunk:
    """New tokens of a stream, its end, or both. Exactly one chunk of a stream has its `end` set: the last one.

    `logprobs` holds one entry per token of `token_ids` where the request asked for log-probabilities, else it is empty.
    """

    token_ids: tuple[int, ...] = ()
    end: StreamEnd | None = None
    logprobs: tuple[SampledToken, ...] = ()


def times_of(request: Request) -> EngineTimes:
    return EngineTimes(request.arrived_ns, request.admitted_ns, request.first_token_ns, request.finished_ns)


_STATUS: dict[RequestState, Literal["finished", "aborted", "rejected"]] = {
    RequestState.FINISHED: "finished",
    RequestState.ABORTED: "aborted",
    RequestState.REJECTED: "rejected",
}


def end_of(request: Request) -> StreamEnd:
    """The end of a request that is in a final state."""
    return StreamEnd(
        status="failed" if request.abort_cause is AbortCause.ERROR else _STATUS[request.state],
        finish_reason=request.finish_reason.value if request.finish_reason else None,
        abort_cause=request.abort_cause.value if request.abort_cause else None,
        error=request.error,
        engine=times_of(request),
        preemptions=request.preemptions,
        recomputed_tokens=request.recomputed_tokens,
        cached_prompt_tokens=request.cached_prompt_tokens,
        kv_peak_blocks=request.kv_peak_blocks,
        kv_block_seconds=request.kv_block_seconds,
        degraded=request.degraded,
        prompt_tokens=len(request.prompt_token_ids),
    )


def chunk_of(request: Request, token: SampledToken) -> StreamChunk:
    """One drawn token on its way to the request's reader."""
    return StreamChunk((token.token_id,), logprobs=(token,) if request.params.logprobs is not None else ())
