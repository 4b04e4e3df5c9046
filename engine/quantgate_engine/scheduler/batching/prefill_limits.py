"""How much of which prompt goes into a step."""

from __future__ import annotations

from collections import Counter

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

    def nobody(self) -> PrefillCount:
        """A count to which those that are being computed are added."""
        return PrefillCount(self._settings)


class PrefillCount:
    """The prompts that are being computed, counted as the limits ask."""

    def __init__(self, settings: BatchingSettings) -> None:
        self._settings = settings
        self._partial = self._long = 0
        self._of_class: Counter[str] = Counter()

    def add(self, request: Request, slo_class: SLOClass) -> None:
        self._partial += 1
        self._long += self._is_long(request)
        self._of_class[slo_class.name] += 1

    def leaves_room_for(self, request: Request, slo_class: SLOClass) -> bool:
        """Whether the request may be prefilled beside those that were counted."""
        settings = self._settings
        return (
            _below(self._partial, settings.max_partial_prefills)
            and _below(self._of_class[slo_class.name], slo_class.max_prefills)
            and (not self._is_long(request) or _below(self._long, settings.max_long_prefills))
        )

    def _is_long(self, request: Request) -> bool:
        return len(request.prompt_token_ids) >= self._settings.long_prefill_tokens


def _below(count: int, limit: int | None) -> bool:
    return limit is None or count < limit
