"""The bound of each figure of `quantgate bench`: tokens per second at what the device was measured to do at most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from quantgate_kernels.roofline import Bound, DecoderWork, DeviceLimits, Work, bound_of


@dataclass(frozen=True, slots=True)
class RateBound:
    """tok_s: the most tokens per second. bound: of the work behind them, a prompt's or one step's."""

    tok_s: float
    bound: Bound

    def to_json(self) -> dict[str, Any]:
        return {
            "bytes_read": self.bound.bytes_read,
            "operations": dict(self.bound.operations),
            "memory_seconds": self.bound.memory_seconds,
            "compute_seconds": self.bound.compute_seconds,
            "limited_by": self.bound.limited_by,
        }


def prefill_bound(work: DecoderWork, limits: DeviceLimits, prompt_tokens: int, step_tokens: int) -> RateBound | None:
    """Of a prompt alone, in chunks of `step_tokens`, up to its first token; None where the device has no such limit."""
    return _rate(prompt_tokens, bound_of(_chunks(work, prompt_tokens, step_tokens), limits))


def decode_bound(work: DecoderWork, limits: DeviceLimits, batch: int, context_tokens: int) -> RateBound | None:
    """Of one step of `batch` requests with `context_tokens` each; None where the device has no such limit."""
    return _rate(batch, bound_of([work.decode_step(batch, batch * context_tokens)], limits))


def _chunks(work: DecoderWork, prompt_tokens: int, step_tokens: int) -> Iterator[Work]:
    for start in range(0, prompt_tokens, step_tokens):
        stop = min(start + step_tokens, prompt_tokens)
        yield work.prefill_step(stop - start, 1, stop, draws=int(stop == prompt_tokens))


def _rate(tokens: int, bound: Bound | None) -> RateBound | None:
    return None if bound is None else RateBound(tokens / bound.seconds, bound)
