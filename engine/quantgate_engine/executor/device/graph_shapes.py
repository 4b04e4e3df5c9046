"""Which decode steps are recorded, and how a step is padded to one of them. Plain numbers: no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quantgate_kernels.step_rows import StepRows

SHORTEST_CONTEXT = 1024
CONTEXT_GROWTH = 4
"""A recorded step divides the work of attention for the longest context that it takes; most steps are far from it."""


class GraphShape(NamedTuple):
    """A decode step of so many sequences, none of them longer than `context` tokens."""

    sequences: int
    context: int


def graph_sequences(most: int) -> tuple[int, ...]:
    """1, 2, 4, 8, 12, 16, 24, 32, 48 ... and `most`: above 8, padding is at most a third of a step's rows.

    A decode step reads the weights whatever its rows, so that padding costs little of its time.
    """
    sizes, power = {most}, 1
    while power < most:
        sizes.add(power)
        if power >= 8 and power * 3 // 2 < most:
            sizes.add(power * 3 // 2)
        power *= 2
    return tuple(sorted(sizes))


def graph_contexts(longest: int) -> tuple[int, ...]:
    """1,024, four times as much and so on, and `longest`."""
    contexts, context = [], SHORTEST_CONTEXT
    while context < longest:
        contexts.append(context)
        context *= CONTEXT_GROWTH
    return (*contexts, longest)


def smallest_that_takes(sizes: Sequence[int], wanted: int) -> int | None:
    """Of ascending sizes; None where all are too small."""
    return next((size for size in sizes if size >= wanted), None)


def is_decode(rows: StepRows) -> bool:
    """Whether each sequence has one new token."""
    return len(rows.token_ids) == len(rows.context_lens)


def padded_rows(rows: StepRows, sequences: int, spare_block: int) -> StepRows:
    """A decode step with more sequences, up to so many, that have one token each.

    They write and read the spare block alone, which belongs to nobody: so nothing of them reaches a real row.
    """
    missing = sequences - len(rows.context_lens)
    return StepRows(
        token_ids=(*rows.token_ids, *(0,) * missing),
        query_starts=range(sequences + 1),
        context_lens=(*rows.context_lens, *(1,) * missing),
        block_tables=(*rows.block_tables, *((spare_block,),) * missing),
        block_size=rows.block_size,
    )
