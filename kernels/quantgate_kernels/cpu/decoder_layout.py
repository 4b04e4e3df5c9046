"""A decoder's weights and a step as the C++ step program reads them: the structures of source/step/decoder.h."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_kernels.cpu.head_screen import HeadScreen, screen_of
from quantgate_kernels.cpu.panels import panel_bias
from quantgate_kernels.layers import DecoderLayer, DecoderShape, DecoderWeights, Projection
from quantgate_kernels.panel_weight import PanelWeight
from quantgate_kernels.types import AttentionBatch, KVLayer


class PanelWeightLayout(ctypes.Structure):
    _fields_ = (
        ("form", ctypes.c_int32),
        ("data", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("code_sums", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),
        ("group_size", ctypes.c_int64),
    )


class HeadScreenLayout(ctypes.Structure):
    _fields_ = (
        ("codes", PanelWeightLayout),
        ("lengths", ctypes.c_void_p),
        ("losses", ctypes.c_void_p),
        ("longest", ctypes.c_float),
    )


class LayerWeightsLayout(ctypes.Structure):
    _fields_ = (
        ("attention_norm", ctypes.c_void_p),
        ("ffn_norm", ctypes.c_void_p),
        ("query_norm", ctypes.c_void_p),
        ("key_norm", ctypes.c_void_p),
        ("query_key_value", PanelWeightLayout),
        ("attention_output", PanelWeightLayout),
        ("gate_up", PanelWeightLayout),
        ("down", PanelWeightLayout),
        ("window", ctypes.c_int64),
    )


class LayerCacheLayout(ctypes.Structure):
    _fields_ = (
        ("keys", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("key_scales", ctypes.c_void_p),
        ("value_scales", ctypes.c_void_p),
    )


class DecoderLayout(ctypes.Structure):
    _fields_ = (
        ("layers", ctypes.c_int64),
        ("hidden", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("kv_heads", ctypes.c_int64),
        ("head_dim", ctypes.c_int64),
        ("ffn", ctypes.c_int64),
        ("norm_eps", ctypes.c_float),
        ("attention_scale", ctypes.c_float),
        ("weights", ctypes.POINTER(LayerWeightsLayout)),
        ("embedding", PanelWeightLayout),
    )


class StepLayout(ctypes.Structure):
    _fields_ = (
        ("token_ids", ctypes.c_void_p),
        ("slots", ctypes.c_void_p),
        ("cosines", ctypes.c_void_p),
        ("sines", ctypes.c_void_p),
        ("query_starts", ctypes.c_void_p),
        ("context_lens", ctypes.c_void_p),
        ("block_tables", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("sequences", ctypes.c_int64),
        ("block_size", ctypes.c_int64),
        ("max_blocks", ctypes.c_int64),
        ("cache", ctypes.POINTER(LayerCacheLayout)),
        ("output_rows", ctypes.c_void_p),
        ("output_count", ctypes.c_int64),
    )


@dataclass(frozen=True, slots=True)
class LaidOutDecoder:
    """The structures of a decoder's weights, and the tensors whose memory they point to.

    final_norm: float32 [hidden].
    """

    decoder: DecoderLayout
    head: PanelWeightLayout
    screen: HeadScreenLayout
    final_norm: Tensor
    kept: tuple[object, ...]


class _Keeper:
    """Gives addresses of tensors and keeps them alive."""

    def __init__(self) -> None:
        self.kept: list[object] = []

    def address(self, tensor: Tensor | None) -> int | None:
        if tensor is None:
            return None
        self.kept.append(tensor)
        return tensor.data_ptr()

    def wide(self, tensor: Tensor | None) -> int | None:
        return None if tensor is None else self.address(tensor.float().contiguous())

    def panels(self, weight: PanelWeight, bias: Tensor | None = None) -> PanelWeightLayout:
        self.kept.append(weight)
        added = None if bias is None else panel_bias(bias, split=weight.split)
        return PanelWeightLayout(
            int(weight.form), *weight.addresses(), self.address(added), weight.inputs, weight.outputs, weight.group_size
        )

    def screen(self, screen: HeadScreen) -> HeadScreenLayout:
        return HeadScreenLayout(
            self.panels(screen.codes), self.address(screen.lengths), self.address(screen.losses), screen.longest
        )

    def projection(self, projection: Projection) -> PanelWeightLayout:
        assert isinstance(projection.weight, PanelWeight)
        return self.panels(projection.weight, projection.bias)


def lay_out_decoder(weights: DecoderWeights, shape: DecoderShape) -> LaidOutDecoder:
    """Every weight must be in panels."""
    assert isinstance(weights.embedding, PanelWeight)
    assert isinstance(weights.head, PanelWeight)
    keeper = _Keeper()
    layers = (LayerWeightsLayout * len(weights.layers))(
        *(_layer(keeper, layer, window) for layer, window in zip(weights.layers, shape.windows, strict=True))
    )
    decoder = DecoderLayout(
        len(weights.layers), shape.hidden, shape.heads, shape.kv_heads, shape.head_dim, shape.ffn,
        shape.norm_eps, shape.attention_scale, layers, keeper.panels(weights.embedding),
    )  # fmt: skip
    head, screen = keeper.panels(weights.head), keeper.screen(screen_of(weights.head))
    return LaidOutDecoder(decoder, head, screen, weights.final_norm.float().contiguous(), (layers, *keeper.kept))


def _layer(keeper: _Keeper, layer: DecoderLayer, window: int | None) -> LayerWeightsLayout:
    norm = layer.head_norm
    return LayerWeightsLayout(
        keeper.wide(layer.attention_norm),
        keeper.wide(layer.ffn_norm),
        keeper.wide(None if norm is None else norm.query),
        keeper.wide(None if norm is None else norm.key),
        *(keeper.projection(projection) for projection in layer.projections()),
        window or 0,
    )


def lay_out_cache(cache: Sequence[KVLayer]) -> ctypes.Array[LayerCacheLayout]:
    """Addresses only: the caller keeps the cache's tensors."""
    return (LayerCacheLayout * len(cache))(
        *(
            LayerCacheLayout(
                *(
                    None if tensor is None else tensor.data_ptr()
                    for tensor in (layer.keys, layer.values, layer.key_scales, layer.value_scales)
                )
            )
            for layer in cache
        )
    )


def lay_out_step(
    token_ids: Tensor,
    cosines: Tensor,
    sines: Tensor,
    batch: AttentionBatch,
    cache: ctypes.Array[LayerCacheLayout],
    output_rows: Tensor | None,
) -> StepLayout:
    """Addresses only: the caller keeps the tensors until the step is done. They must be dense in memory."""
    return StepLayout(
        token_ids.data_ptr(), batch.slots.data_ptr(), cosines.data_ptr(), sines.data_ptr(),
        batch.query_starts.data_ptr(), batch.context_lens.data_ptr(), batch.block_tables.data_ptr(),
        batch.num_rows, batch.num_sequences, batch.block_size, batch.block_tables.shape[1], cache,
        *((None, batch.num_rows) if output_rows is None else (output_rows.data_ptr(), output_rows.shape[0])),
    )  # fmt: skip


def aligned_bytes(count: int, alignment: int = 64) -> Tensor:
    """uint8 [count], zeros, that start on a cache line."""
    buffer = torch.zeros(count + alignment, dtype=torch.uint8)
    start = -buffer.data_ptr() % alignment
    return buffer[start : start + count]
