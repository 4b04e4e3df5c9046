"""The `cpu` step program: all layers of a step in one call of the compiled kernels."""

from __future__ import annotations

import ctypes
import weakref
from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

from quantgate_kernels.cpu.decoder_layout import aligned_bytes, lay_out_decoder
from quantgate_kernels.cpu.library import StepFunctions
from quantgate_kernels.cpu.step_layout import LaidOutStep, LayerCacheLayout, address_of, lay_out_cache, lay_out_step
from quantgate_kernels.layers import Angles, DecoderShape, DecoderWeights
from quantgate_kernels.step_rows import StepRows
from quantgate_kernels.types import KVLayer


class CpuStepProgram:
    """Implements `StepProgram` for weights in panels. Memory that steps work in is kept and grows with the rows."""

    def __init__(self, functions: StepFunctions, weights: DecoderWeights, shape: DecoderShape, angles: Angles) -> None:
        self._functions = functions
        self._hidden = shape.hidden
        self._vocab = weights.head.shape[0]
        self._laid_out = lay_out_decoder(weights, shape, angles)
        self._decoder = ctypes.byref(self._laid_out.decoder)
        self._head = ctypes.byref(self._laid_out.head)
        self._workspace = aligned_bytes(0)
        self._caches = _LatestCache()

    def hidden_states(
        self, rows: StepRows, cache: Sequence[KVLayer], output_rows: Sequence[int] | None = None
    ) -> Tensor:
        threads, laid_out = torch.get_num_threads(), self._lay_out(rows, cache, output_rows)
        step = laid_out.step
        hidden = torch.empty((step.rows, self._hidden), dtype=torch.float32)
        workspace = self._memory(self._functions.step_bytes(self._decoder, step.rows, threads))
        self._functions.decoder_step(self._decoder, ctypes.byref(step), hidden.data_ptr(), workspace, threads)
        return hidden[: step.output_count]

    def next_tokens(
        self, rows: StepRows, cache: Sequence[KVLayer], output_rows: Sequence[int] | None = None
    ) -> list[int]:
        threads, laid_out = torch.get_num_threads(), self._lay_out(rows, cache, output_rows)
        step, tokens = ctypes.byref(laid_out.step), array("q", (0,) * laid_out.step.output_count)
        workspace = self._memory(self._functions.step_tokens_bytes(self._decoder, self._head, step, threads))
        self._functions.step_tokens(self._decoder, self._head, step, address_of(tokens), workspace, threads)
        return tokens.tolist()

    def _lay_out(self, rows: StepRows, cache: Sequence[KVLayer], output_rows: Sequence[int] | None) -> LaidOutStep:
        return lay_out_step(rows, self._caches.layout_of(cache), output_rows)

    def logits(self, hidden: Tensor) -> Tensor:
        logits = torch.empty((hidden.shape[0], self._vocab), dtype=torch.float32)
        self._run_head(hidden, logits, None)
        return logits

    def best_tokens(self, hidden: Tensor) -> Tensor:
        tokens = torch.empty(hidden.shape[0], dtype=torch.int64)
        self._run_head(hidden, None, tokens)
        return tokens

    def _run_head(self, hidden: Tensor, logits: Tensor | None, tokens: Tensor | None) -> None:
        threads, rows = torch.get_num_threads(), hidden.shape[0]
        workspace = self._memory(self._functions.head_bytes(self._head, rows, threads))
        residual = hidden.contiguous()
        self._functions.head(
            self._head, residual.data_ptr(), rows,
            None if logits is None else logits.data_ptr(), None if tokens is None else tokens.data_ptr(),
            workspace, threads,
        )  # fmt: skip

    def _memory(self, count: int) -> int:
        if self._workspace.numel() < count:
            self._workspace = aligned_bytes(count)
        return self._workspace.data_ptr()


class _LatestCache:
    """The layout of the cache that was used last, without keeping that cache alive.

    An engine passes the same one at every step, and 30 layers have 120 addresses.
    """

    def __init__(self) -> None:
        self._first: weakref.ref[Tensor] | None = None
        self._identity = 0
        self._layout: ctypes.Array[LayerCacheLayout] | None = None

    def layout_of(self, cache: Sequence[KVLayer]) -> ctypes.Array[LayerCacheLayout]:
        # An address alone could be that of a cache made since; its first tensor is alive only if it is the same one.
        known = self._first is not None and self._first() is cache[0].keys and self._identity == id(cache)
        if self._layout is None or not known:
            self._first, self._identity = weakref.ref(cache[0].keys), id(cache)
            self._layout = lay_out_cache(cache)
        return self._layout
