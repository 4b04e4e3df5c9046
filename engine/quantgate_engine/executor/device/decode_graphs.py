"""Decode steps that were recorded once: a replay starts all of a step's kernels at the price of one."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from quantgate_engine.executor.device.accelerator import Accelerator, RecordedWork
from quantgate_engine.executor.device.graph_shapes import GraphShape, is_decode, padded_rows, smallest_that_takes
from quantgate_engine.executor.device.step_layout import StepShape, parts_of, step_bytes
from quantgate_engine.executor.device.step_transfer import StepTransfer, batch_of
from quantgate_engine.model.decoder import Decoder
from quantgate_kernels.step_rows import StepRows
from quantgate_kernels.types import KVLayer


class DecodeGraphs:
    """One recording for each number of sequences and each bound of their contexts, over one cache.

    All read the same memory, which each step fills: what a step is stands there and nowhere else. The head is not
    recorded: its kernels are started while the layers are still at work.
    """

    def __init__(
        self,
        decoder: Decoder,
        accelerator: Accelerator,
        transfer: StepTransfer,
        cache: Sequence[KVLayer],
        *,
        sequences: Sequence[int],
        contexts: Sequence[int],
        spare_block: int,
    ) -> None:
        """sequences, contexts: ascending. spare_block: a block of the cache that belongs to nobody."""
        self._decoder = decoder
        self._transfer = transfer
        self._cache = cache
        self._sequences = sequences
        self._contexts = contexts
        self._spare_block = spare_block
        self._block_size = cache[0].keys.shape[1]
        self._memory = accelerator.memory(step_bytes(self._step_shape(GraphShape(sequences[-1], contexts[-1]))))
        # The largest first: the others then find their memory among what it needed.
        self._recorded = {
            shape: self._record(shape, accelerator)
            for shape in (GraphShape(most, longest) for most in reversed(sequences) for longest in reversed(contexts))
        }

    def __len__(self) -> int:
        return len(self._recorded)

    def hidden_states(self, rows: StepRows) -> Tensor | None:
        """[S, hidden] of a decode step, to be read before the next; None for a step that no recording takes."""
        if not is_decode(rows):
            return None
        sequences = smallest_that_takes(self._sequences, len(rows.context_lens))
        context = smallest_that_takes(self._contexts, max(rows.context_lens))
        if sequences is None or context is None:
            return None
        shape = GraphShape(sequences, context)
        self._send(rows, shape)
        recorded = self._recorded[shape]
        recorded.replay()
        return recorded.result[: len(rows.context_lens)]

    def _record(self, shape: GraphShape, accelerator: Accelerator) -> RecordedWork:
        nobody = StepRows((), (0,), (), (), self._block_size)
        rows = self._send(nobody, shape)
        parts = parts_of(self._memory, self._step_shape(shape))

        def layers() -> Tensor:
            # A batch of its own each time: what a kernel set has worked out for another one is not recorded.
            batch = batch_of(parts, rows, (shape.context,) * shape.sequences)
            return self._decoder.layers(parts.token_ids, batch, self._cache)

        return accelerator.record(layers)

    def _send(self, rows: StepRows, shape: GraphShape) -> StepRows:
        padded = padded_rows(rows, shape.sequences, self._spare_block)
        self._transfer.send_to(self._memory, self._step_shape(shape), padded, ())
        return padded

    def _step_shape(self, shape: GraphShape) -> StepShape:
        return StepShape(shape.sequences, shape.sequences, -(-shape.context // self._block_size), outputs=0)
