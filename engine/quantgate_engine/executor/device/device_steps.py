"""A decoder's steps on a device that works beside the host."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from quantgate_engine.executor.device.accelerator import Accelerator
from quantgate_engine.executor.device.decode_graphs import DecodeGraphs
from quantgate_engine.executor.device.device_draws import DeviceDraws
from quantgate_engine.executor.device.step_transfer import StepTransfer
from quantgate_engine.model.decoder import Decoder
from quantgate_kernels.step_rows import StepRows
from quantgate_kernels.types import KVLayer


class DeviceSteps:
    """Implements `StepDecoder`. Hidden states stay on the device; logits and tokens come back in one copy each.

    A step is done when its last call returns, also where nothing is read of it: so the time of a step is the time that
    it took, and the memory that it was sent through is free for the next one.
    """

    def __init__(self, decoder: Decoder, accelerator: Accelerator) -> None:
        self._decoder = decoder
        self._accelerator = accelerator
        self._transfer = StepTransfer(accelerator)
        self.draws = DeviceDraws(decoder, accelerator, self._transfer)
        self._graphs: DecodeGraphs | None = None

    @torch.inference_mode()
    def record_decodes(
        self, cache: Sequence[KVLayer], *, sequences: Sequence[int], contexts: Sequence[int], spare_block: int
    ) -> int:
        """From now on decode steps over this cache are replayed; see `DecodeGraphs`. Returns how many were recorded."""
        self._graphs = DecodeGraphs(
            self._decoder,
            self._accelerator,
            self._transfer,
            cache,
            sequences=sequences,
            contexts=contexts,
            spare_block=spare_block,
        )
        self._accelerator.finish()
        return len(self._graphs)

    @torch.inference_mode()
    def hidden_states(
        self, rows: StepRows, cache: Sequence[KVLayer], output_rows: Sequence[int] | None = None
    ) -> Tensor:
        try:
            return self._computed(rows, cache, output_rows)
        except BaseException:
            # What was sent of the failed step may still be under way, and the next one is sent through the same memory.
            self._accelerator.finish()
            raise

    @torch.inference_mode()
    def logits(self, hidden: Tensor, *, exact: bool = False) -> Tensor:
        return self._transfer.read(self._decoder.logits(hidden, exact=exact))

    @torch.inference_mode()
    def best_tokens(self, hidden: Tensor) -> Tensor:
        return self._transfer.read(self._decoder.best_tokens(hidden))

    def next_tokens(
        self, rows: StepRows, cache: Sequence[KVLayer], output_rows: Sequence[int] | None = None
    ) -> list[int]:
        hidden = self.hidden_states(rows, cache, output_rows)
        if not len(hidden):
            self._accelerator.finish()
            return []
        best: list[int] = self.best_tokens(hidden).tolist()
        return best

    def _computed(self, rows: StepRows, cache: Sequence[KVLayer], output_rows: Sequence[int] | None) -> Tensor:
        recorded = self._graphs.hidden_states(rows) if self._graphs is not None else None
        if recorded is not None:
            if output_rows is None:
                return recorded
            # One token of a prompt that goes on, among decodes: seldom, and then another small transfer.
            return recorded.index_select(0, torch.tensor(output_rows, dtype=torch.int64, device=recorded.device))
        sent = self._transfer.send(rows, output_rows)
        hidden = self._decoder.layers(sent.token_ids, sent.batch, cache)
        return hidden if output_rows is None else hidden.index_select(0, sent.output_rows)
