"""The way of a step's integers to the device and of its results back: one copy each, through pinned memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from quantgate_engine.executor.device.accelerator import Accelerator
from quantgate_engine.executor.device.step_layout import StepIntegers, StepShape, StepWriter, parts_of, step_bytes
from quantgate_kernels.step_rows import StepRows
from quantgate_kernels.types import AttentionBatch


class SentStep(NamedTuple):
    """A step on the device. output_rows: int64 [R], empty where all rows are wanted."""

    token_ids: Tensor
    batch: AttentionBatch
    output_rows: Tensor


class StepTransfer:
    """Its two staging areas grow to the largest step and the largest result, and are then used again and again.

    The step before must be done when the next one is sent: the copy that brought it may still be reading.
    """

    def __init__(self, accelerator: Accelerator) -> None:
        self._accelerator = accelerator
        self._writer = StepWriter(accelerator.staging(0))
        self._read = accelerator.staging(0)

    def send(self, rows: StepRows, output_rows: Sequence[int] | None) -> SentStep:
        """Into memory of its own."""
        outputs = output_rows or ()
        shape = StepShape(len(rows.context_lens), len(rows.token_ids), max(map(len, rows.block_tables)), len(outputs))
        parts = self.send_to(self._accelerator.memory(step_bytes(shape)), shape, rows, outputs)
        return SentStep(parts.token_ids, batch_of(parts, rows, rows.context_lens), parts.output_rows)

    def send_to(self, memory: Tensor, shape: StepShape, rows: StepRows, output_rows: Sequence[int]) -> StepIntegers:
        """Into the first bytes of `memory`."""
        size = step_bytes(shape)
        if self._writer.area.numel() < size:
            self._writer = StepWriter(self._accelerator.staging(_grown(size)))
        self._writer.write(shape, rows, output_rows)
        memory[:size].copy_(self._writer.area[:size], non_blocking=True)
        return parts_of(memory, shape)

    def read(self, result: Tensor) -> Tensor:
        """`result` in the host's memory, when all work of the step is done; it stands until the next call."""
        size = result.numel() * result.element_size()
        if self._read.numel() < size:
            self._read = self._accelerator.staging(_grown(size))
        there = self._read[:size].view(result.dtype).view(result.shape)
        there.copy_(result, non_blocking=True)
        self._accelerator.finish()
        return there


def batch_of(parts: StepIntegers, rows: StepRows, longest_contexts: Sequence[int]) -> AttentionBatch:
    """longest_contexts: what kernels divide their work for; at least the contexts themselves."""
    return AttentionBatch(
        query_starts=parts.query_starts,
        context_lens=parts.context_lens,
        block_tables=parts.block_tables,
        slots=parts.slots,
        positions=parts.positions,
        query_starts_host=tuple(rows.query_starts),
        context_lens_host=tuple(longest_contexts),
        block_size=rows.block_size,
    )


def _grown(num_bytes: int) -> int:
    """To the next power of two: pinning takes milliseconds, and steps grow by a few rows at a time."""
    return 1 << (num_bytes - 1).bit_length()
