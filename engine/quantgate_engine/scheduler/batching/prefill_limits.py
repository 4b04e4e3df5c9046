"""How much of which prompt goes into a step."""

from __future__ import annotations

from collections.abc import Iterable

from quantgate_engine.request import Request
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.slo_class import SLOClass


class PrefillLimits:
    """Sizes of chunks, and how many prompts may be computed beside each other."""

    def __init__(self, settings: BatchingSettings) -> None:
        self._settings = settings

    def chunk(self, request: Request, budget: int, *, first: bool) -> int:
        """Tokens of the request to compute now; `first`: whether the step has no prefill yet.

        A prompt that may not be cut waits for a step with room for all of it, or goes alone above the budget where no
        step has.
        """
        left = request.num_uncomputed_tokens
        if not self._settings.chunked_prefill:
            return left if left <= budget or first else 0
        return max(0, min(left, budget, self._settings.max_chunk_tokens or left))

    def allow(self, request: Request, slo_class: SLOClass, prefilling: Iterable[tuple[Request, SLOClass]]) -> bool:
        """Whether the request may be prefilled beside those that are."""
        partial = long = of_class = 0
        for other, other_class in prefilling:
            partial += 1
            long += self._is_long(other)
            of_class += other_class is slo_class
        settings = self._settings
        return (
            _below(partial, settings.max_partial_prefills)
            and (not self._is_long(request) or _below(long, settings.max_long_prefills))
            and _below(of_class, slo_class.max_prefills)
        )

    def _is_long(self, request: Request) -> bool:
        return len(request.prompt_token_ids) >= self._settings.long_prefill_tokens


def _below(count: int, limit: int | None) -> bool:
    return limit is None or count < limit
