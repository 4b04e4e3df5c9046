"""A step's sequences as the rows that the decoder computes."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate_engine.executor.base import ScheduledSequence
from quantgate_kernels.step_rows import StepRows


def rows_of(sequences: Sequence[ScheduledSequence], block_size: int) -> StepRows:
    """Rows in the order of `sequences`."""
    tokens: list[int] = []
    starts, contexts = [0], []
    for sequence in sequences:
        tokens += sequence.token_ids
        starts.append(len(tokens))
        contexts.append(sequence.start_position + len(sequence.token_ids))
    return StepRows(tokens, starts, contexts, [sequence.block_table for sequence in sequences], block_size)
