"""The bound of steps that were run: what the step log says of them, over the limits of their device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from quantgate.metrics.columns import NS_PER_S, floats
from quantgate.metrics.step_sums import pure_steps
from quantgate_kernels.roofline import Bound, DecoderWork, DeviceLimits, Work, bound_of

Kind = Literal["prefill", "decode"]
_OTHER: dict[Kind, Kind] = {"prefill": "decode", "decode": "prefill"}


@dataclass(frozen=True, slots=True)
class StepsAgainstBound:
    """Of all steps of one kind of work and no other: their tokens, the seconds that they took, and their bound."""

    tokens: float
    seconds: float
    bound: Bound

    @property
    def tok_s(self) -> float:
        """Tokens per second at the bound."""
        return self.tokens / self.bound.seconds

    @property
    def share(self) -> float:
        """Share of the bound that was reached."""
        return self.bound.seconds / self.seconds


def against_bound(steps: pa.Table, kind: Kind, work: DecoderWork, limits: DeviceLimits) -> StepsAgainstBound | None:
    """steps: of one arm. None where none is of this kind alone, or the device has no limit for the arm's arithmetic.

    The log does not tell how a step's tokens are spread over its sequences, nor which of them end their prompts: the
    bound takes what costs least.
    """
    pure = steps.filter(pa.array(pure_steps(steps, f"{kind}_tokens", f"{_OTHER[kind]}_tokens")))
    seconds = float(floats(pure, "duration_ns").sum() / NS_PER_S)
    bound = bound_of(_works(pure, kind, work), limits)
    if bound is None or not bound.seconds > 0 or not seconds > 0:
        return None
    return StepsAgainstBound(float(floats(pure, f"{kind}_tokens").sum()), seconds, bound)


def _works(steps: pa.Table, kind: Kind, work: DecoderWork) -> Iterator[Work]:
    columns = (steps[name].to_pylist() for name in (f"{kind}_tokens", f"batch_size_{kind}", "context_tokens"))
    for tokens, sequences, context in zip(*columns, strict=True):
        if kind == "decode":
            yield work.decode_step(tokens, context)
        else:
            yield work.prefill_step(tokens, max(1, sequences), max(context, tokens), draws=0)
