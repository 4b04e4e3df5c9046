"""How far greedy answers stay what the reference's are: a rough look, because near-ties flip with any rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import fmean


@dataclass(frozen=True, slots=True)
class Agreement:
    """Tokens before the first difference, of the lone answer and on average of the batch; and equal first tokens."""

    single_prefix: int
    batch_prefix: float
    first_tokens: int


def common_prefix(ours: Sequence[int], reference: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, reference, strict=False)))


def agreement(
    single: Sequence[int],
    batch: Sequence[Sequence[int]],
    reference_single: Sequence[int],
    reference_batch: Sequence[Sequence[int]],
) -> Agreement:
    prefixes = [common_prefix(*pair) for pair in zip(batch, reference_batch, strict=True)]
    return Agreement(
        single_prefix=common_prefix(single, reference_single),
        batch_prefix=fmean(prefixes),
        first_tokens=sum(prefix > 0 for prefix in prefixes),
    )
