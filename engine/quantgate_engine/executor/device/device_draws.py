"""Tokens that are drawn where their logits are, so that these need not come to the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from quantgate_engine.executor.device.accelerator import Accelerator
from quantgate_engine.executor.device.step_transfer import StepTransfer
from quantgate_engine.model.decoder import Decoder
from quantgate_engine.sampling.draw import usable_temperature
from quantgate_engine.sampling.noise import WORD
from quantgate_engine.sampling.sampler import SamplingRow

_BYTES_OF_A_ROW = 24
"""Seed and position, int64; temperature and min_p, float32."""


class DeviceDraws:
    """Draws as `draw_token` does, by the same noise, for rows that ask for nothing but temperature and min_p."""

    def __init__(self, decoder: Decoder, accelerator: Accelerator, transfer: StepTransfer) -> None:
        self._decoder = decoder
        self._accelerator = accelerator
        self._transfer = transfer

    def tokens(self, hidden: Tensor, rows: Sequence[SamplingRow]) -> list[int] | None:
        """hidden [R, hidden] -> a token for each row, NO_BEST_TOKEN where its logits overflowed.

        None where the host has to draw: the kernel set does not, or a row is cut to its top_k or top_p, which asks for
        the order of its tokens, or has a token forced on it.
        """
        draw = self._decoder.draws
        if draw is None or not all(map(_is_plain, rows)):
            return None
        seeds, positions, temperatures, min_p = self._sent(rows)
        drawn = self._decoder.drawn_tokens(draw, hidden, temperatures, min_p, seeds, positions)
        tokens: list[int] = self._transfer.read(drawn).tolist()
        return tokens

    def _sent(self, rows: Sequence[SamplingRow]) -> tuple[Tensor, ...]:
        """Seeds, positions, temperatures and min_p, in one transfer."""
        size = _BYTES_OF_A_ROW * len(rows)
        area, there = self._accelerator.staging(size), self._accelerator.memory(size)
        seeds, positions, temperatures, min_p = (part.numpy() for part in _columns(area, len(rows)))
        seeds.view(np.uint64)[:] = [row.params.seed % WORD for row in rows]
        positions[:] = [row.position for row in rows]
        temperatures[:] = [usable_temperature(row.params.temperature) for row in rows]
        min_p[:] = [row.params.min_p for row in rows]
        there.copy_(area, non_blocking=True)
        return _columns(there, len(rows))


def _columns(memory: Tensor, rows: int) -> tuple[Tensor, ...]:
    long, short = memory[: 16 * rows].view(torch.int64), memory[16 * rows :].view(torch.float32)
    return (*long.view(2, rows).unbind(0), *short.view(2, rows).unbind(0))


def _is_plain(row: SamplingRow) -> bool:
    return row.params.top_k == 0 and row.params.top_p == 1.0 and row.forced_token_id is None
