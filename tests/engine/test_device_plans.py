"""What is decided by arithmetic before a GPU is asked: sizes, padding, layouts, shares of memory."""

from __future__ import annotations

import itertools

import pytest
import torch

from quantgate_engine.executor.device.graph_shapes import (
    graph_contexts,
    graph_sequences,
    is_decode,
    padded_rows,
    smallest_that_takes,
)
from quantgate_engine.executor.device.memory_plan import (
    blocks_that_fit,
    largest_step,
    least_blocks,
    longest_context,
)
from quantgate_engine.executor.device.step_layout import ALIGNMENT, StepShape, StepWriter, parts_of, step_bytes
from quantgate_engine.model.batch_tensors import build_batch
from quantgate_kernels.step_rows import StepRows

ROWS = StepRows((5, 6, 7, 8), (0, 3, 4), (9, 17), ((4, 2), (1, 7, 3)), block_size=8)


def test_recorded_sizes_end_with_the_largest_batch() -> None:
    assert graph_sequences(1) == (1,)
    assert graph_sequences(5) == (1, 2, 4, 5)
    assert graph_sequences(16) == (1, 2, 4, 8, 12, 16)
    assert graph_sequences(100) == (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 100)
    assert graph_contexts(512) == (512,)
    assert graph_contexts(8192) == (1024, 4096, 8192)


@pytest.mark.parametrize("most", [9, 16, 33, 256])
def test_padding_is_at_most_a_third_of_a_step_above_eight(most: int) -> None:
    sizes = graph_sequences(most)
    for sequences in range(1, most + 1):
        taken = smallest_that_takes(sizes, sequences)
        assert taken is not None
        assert taken >= sequences
        assert sequences <= 8 or 3 * (taken - sequences) <= taken
    assert smallest_that_takes(sizes, most + 1) is None


def test_padded_sequences_have_one_token_in_the_spare_block() -> None:
    rows = StepRows((5, 6), (0, 1, 2), (9, 17), ((4, 2), (1, 7, 3)), block_size=8)
    padded = padded_rows(rows, 4, spare_block=40)
    assert is_decode(rows)
    assert is_decode(padded)
    assert not is_decode(ROWS)
    assert padded.token_ids == (5, 6, 0, 0)
    assert list(padded.query_starts) == [0, 1, 2, 3, 4]
    assert padded.context_lens == (9, 17, 1, 1)
    assert padded.block_tables == ((4, 2), (1, 7, 3), (40,), (40,))


def test_a_step_in_one_stretch_of_memory_is_the_step_in_tensors() -> None:
    token_ids, batch = build_batch(ROWS, torch.device("cpu"))
    shape = StepShape(sequences=2, rows=4, table_width=3, outputs=2)
    memory = torch.full((step_bytes(shape),), 0x7F, dtype=torch.uint8)
    StepWriter(memory).write(shape, ROWS, (2, 3))
    parts = parts_of(memory.clone(), shape)
    expected = (
        token_ids, batch.positions, batch.slots, torch.tensor([2, 3]), batch.query_starts, batch.context_lens,
        batch.block_tables,
    )  # fmt: skip
    for part, tensor in zip(parts, expected, strict=True):
        assert part.dtype == tensor.dtype
        assert torch.equal(part, tensor)
    assert {part.storage_offset() * part.itemsize % ALIGNMENT for part in parts} == {0}
    ends = sorted((part.storage_offset() * part.itemsize, part.nbytes) for part in parts)
    assert all(start + size <= following for (start, size), (following, _) in itertools.pairwise(ends))


def test_tables_are_cut_and_padded_to_the_width_of_the_layout() -> None:
    shape = StepShape(sequences=2, rows=4, table_width=2, outputs=0)
    memory = torch.full((step_bytes(shape),), 0x7F, dtype=torch.uint8)
    writer = StepWriter(memory)
    writer.write(shape, ROWS._replace(block_tables=((4, 2, 9), (6, 7, 3))), ())
    assert parts_of(memory, shape).block_tables.tolist() == [[4, 2], [6, 7]]


def test_what_other_steps_left_in_the_area_is_in_no_later_one() -> None:
    """Sequences come, go, change places and grow; the layout changes and comes back; tables are equal, or the same."""
    first, second, third = (4, 2, 9), (6, 7), (3,)
    small = StepShape(sequences=2, rows=4, table_width=4, outputs=0)
    other = StepShape(sequences=2, rows=4, table_width=3, outputs=4)
    writer = StepWriter(torch.full((step_bytes(other) + step_bytes(small),), 0x7F, dtype=torch.uint8))
    steps = [
        (small, (first, second)), (small, (first, second)), (small, (second, first)), (small, (second, (4, 2, 9, 8))),
        (other, (second, first)), (small, (second, (4, 2, 9, 8))), (small, (third, (6, 7))), (small, (third, first)),
    ]  # fmt: skip
    for shape, tables in steps:
        writer.write(shape, ROWS._replace(context_lens=(3, 1), block_tables=tables), (0,) * shape.outputs)
        expected = [[*table, *(0,) * (shape.table_width - len(table))] for table in tables]
        assert parts_of(writer.area, shape).block_tables.tolist() == expected


def test_the_pool_gets_its_share_of_what_steps_leave() -> None:
    assert blocks_that_fit(free_bytes=1000, step_bytes=200, share=0.5, block_bytes=100) == 4
    assert blocks_that_fit(free_bytes=1000, step_bytes=1200, share=0.5, block_bytes=100) == 0
    assert least_blocks(300, 16) == 19
    assert least_blocks(100_000, 16) == 128


def test_no_context_of_the_largest_step_is_longer_than_a_pool_could_hold() -> None:
    assert longest_context(4096, pool_tokens=1_000_000, sequences=16, step_tokens=256) == 4096
    assert longest_context(131_072, pool_tokens=160_000, sequences=16, step_tokens=256) == 10_000
    assert longest_context(131_072, pool_tokens=16, sequences=16, step_tokens=256) == 16


def test_the_largest_step_has_all_tokens_and_all_sequences() -> None:
    rows = largest_step(step_tokens=24, sequences=5, context=64, block_size=16)
    assert [b - a for a, b in itertools.pairwise(rows.query_starts)] == [20, 1, 1, 1, 1]
    assert rows.context_lens == (64,) * 5
    assert rows.block_tables == ((0, 0, 0, 0),) * 5
    short = largest_step(step_tokens=24, sequences=5, context=8, block_size=16)
    assert [b - a for a, b in itertools.pairwise(short.query_starts)] == [8, 8, 6, 1, 1]
    assert len(short.token_ids) == 24
