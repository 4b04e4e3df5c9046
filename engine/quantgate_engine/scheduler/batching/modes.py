"""What kinds of work may share a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from quantgate_engine.scheduler.batching.settings import BatchModeName


@dataclass(frozen=True, slots=True)
class StepKind:
    """What a step may hold. `fills_batch`: requests are let in regardless of the step's budget and of the limits."""

    decode: bool
    prefill: bool
    admit: bool
    fills_batch: bool = False


class BatchMode(Protocol):
    def kinds(self, num_prefilling: int, num_decoding: int, /) -> tuple[StepKind, ...]:
        """The kinds of step to try, in order: the first that finds work is the step."""
        ...


_DECODE = StepKind(decode=True, prefill=False, admit=False)
_PREFILL = StepKind(decode=False, prefill=True, admit=True)


class Mixed:
    """Decodes first, and prefill chunks in what is left of the budget."""

    def kinds(self, _num_prefilling: int, _num_decoding: int) -> tuple[StepKind, ...]:
        return (StepKind(decode=True, prefill=True, admit=True),)


class Split:
    """All prefill or all decode, in turns while there is work of both kinds, so that neither stalls the other."""

    def __init__(self) -> None:
        self._prefill_is_next = True

    def kinds(self, _num_prefilling: int, _num_decoding: int) -> tuple[StepKind, ...]:
        prefill_first = self._prefill_is_next
        self._prefill_is_next = not prefill_first
        return (_PREFILL, _DECODE) if prefill_first else (_DECODE, _PREFILL)


class Static:
    """The classical batch, as a baseline: filled when nothing runs, prefilled, then decoded to its last token."""

    def kinds(self, num_prefilling: int, num_decoding: int) -> tuple[StepKind, ...]:
        if not num_prefilling and not num_decoding:
            return (StepKind(decode=False, prefill=True, admit=True, fills_batch=True),)
        return (StepKind(decode=False, prefill=True, admit=False), _DECODE)


BATCH_MODES: Mapping[BatchModeName, Callable[[], BatchMode]] = MappingProxyType(
    {"mixed": Mixed, "split": Split, "static": Static}
)
