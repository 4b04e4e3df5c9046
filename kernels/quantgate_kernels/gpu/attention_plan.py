"""Which kernel computes which rows of a step, worked out once for all of its layers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_kernels.types import AttentionBatch


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """Either part is None where the step has no such rows.

    tiles: int32 [N, 2], the work of the kernel for prefills, as `prefill_tiles` gives it.
    decodes: int32 [N], the sequences with one new row, whose longest context has `longest` tokens.
    """

    tiles: Tensor | None
    decodes: Tensor | None
    longest: int


class AttentionPlans:
    """All layers of a step pass the same batch object: only the first of them plans."""

    def __init__(self, *, split_decodes: bool) -> None:
        """split_decodes: rows that are alone get the kernel that splits their context, and not that of prefills."""
        self._split_decodes = split_decodes
        self._batch: AttentionBatch | None = None
        self._plans: dict[int, AttentionPlan] = {}

    def of(self, batch: AttentionBatch, queries: int) -> AttentionPlan:
        """queries: rows of a sequence in a tile."""
        if batch is not self._batch:
            self._batch, self._plans = batch, {}
        if queries not in self._plans:
            self._plans[queries] = self._make(batch, queries)
        return self._plans[queries]

    def _make(self, batch: AttentionBatch, queries: int) -> AttentionPlan:
        starts, device = batch.query_starts_host, batch.block_tables.device
        if starts == tuple(range(batch.num_sequences + 1)):
            return self._lone_rows(batch)
        every = range(batch.num_sequences)
        alone = {index for index in every if self._split_decodes and starts[index + 1] - starts[index] == 1}
        tiles = prefill_tiles(batch, queries, [index for index in every if index not in alone])
        return AttentionPlan(
            tiles=torch.tensor(tiles, dtype=torch.int32, device=device) if tiles else None,
            decodes=torch.tensor(sorted(alone), dtype=torch.int32, device=device) if alone else None,
            longest=max((batch.context_lens_host[index] for index in alone), default=0),
        )

    def _lone_rows(self, batch: AttentionBatch) -> AttentionPlan:
        """Every sequence has one new row. Made on the device alone: so a step of decodes can be recorded."""
        sequences = torch.arange(batch.num_sequences, dtype=torch.int32, device=batch.block_tables.device)
        if self._split_decodes:
            return AttentionPlan(tiles=None, decodes=sequences, longest=max(batch.context_lens_host))
        return AttentionPlan(torch.stack((sequences, torch.zeros_like(sequences)), dim=1), decodes=None, longest=0)


def prefill_tiles(batch: AttentionBatch, queries: int, sequences: Iterable[int]) -> list[tuple[int, int]]:
    """(sequence, first of its new rows) for each tile of `queries` rows, in a sequence the longest contexts first."""
    starts = batch.query_starts_host
    tiles: list[tuple[int, int]] = []
    for sequence in sequences:
        new = starts[sequence + 1] - starts[sequence]
        tiles += [(sequence, first) for first in reversed(range(0, new, queries))]
    return tiles
