"""A decoder's weights as the C++ step program reads them: the structures of source/step that never change."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_kernels.cpu.head_screen import HeadScreen, screen_of
from quantgate_kernels.cpu.panels import panel_bias
from quantgate_kernels.layers import Angles, DecoderLayer, DecoderShape, DecoderWeights, Projection
from quantgate_kernels.panel_weight import PanelForm, PanelWeight
from quantgate_kernels.types import ReorderedWeight


class PanelWeightLayout(ctypes.Structure):
    _fields_ = (
        ("form", ctypes.c_int32),
        ("half_scales", ctypes.c_int32),
        ("data", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("zeros", ctypes.c_void_p),
        ("code_sums", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),
        ("group_size", ctypes.c_int64),
    )


class ProjectionLayout(ctypes.Structure):
    _fields_ = (
        ("weight", PanelWeightLayout),
        ("order", ctypes.c_void_p),
    )


class HeadScreenLayout(ctypes.Structure):
    _fields_ = (
        ("codes", PanelWeightLayout),
        ("lengths", ctypes.c_void_p),
        ("losses", ctypes.c_void_p),
        ("longest", ctypes.c_float),
    )


class HeadLayout(ctypes.Structure):
    _fields_ = (
        ("weight", PanelWeightLayout),
        ("screen", ctypes.POINTER(HeadScreenLayout)),
        ("norm", ctypes.c_void_p),
        ("eps", ctypes.c_float),
    )


class LayerWeightsLayout(ctypes.Structure):
    _fields_ = (
        ("attention_norm", ctypes.c_void_p),
        ("ffn_norm", ctypes.c_void_p),
        ("query_norm", ctypes.c_void_p),
        ("key_norm", ctypes.c_void_p),
        ("query_key_value", ProjectionLayout),
        ("attention_output", ProjectionLayout),
        ("gate_up", ProjectionLayout),
        ("down", ProjectionLayout),
        ("window", ctypes.c_int64),
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
        ("cosines", ctypes.c_void_p),
        ("sines", ctypes.c_void_p),
        ("weights", ctypes.POINTER(LayerWeightsLayout)),
        ("embedding", PanelWeightLayout),
    )


@dataclass(frozen=True, slots=True)
class LaidOutDecoder:
    """The structures of a decoder's weights, and the tensors whose memory they point to."""

    decoder: DecoderLayout
    head: HeadLayout
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
            int(weight.form), int(weight.has_half_scales), *weight.addresses(), self.address(added),
            weight.inputs, weight.outputs, weight.group_size,
        )  # fmt: skip

    def screen(self, screen: HeadScreen) -> HeadScreenLayout:
        return HeadScreenLayout(
            self.panels(screen.codes), self.address(screen.lengths), self.address(screen.losses), screen.longest
        )

    def projection(self, projection: Projection) -> ProjectionLayout:
        weight, order = projection.weight, None
        if isinstance(weight, ReorderedWeight):
            order = weight.order
            weight = weight.weight
        assert isinstance(weight, PanelWeight)
        return ProjectionLayout(self.panels(weight, projection.bias), self.address(order))


def lay_out_decoder(weights: DecoderWeights, shape: DecoderShape, angles: Angles) -> LaidOutDecoder:
    """Every weight must be in panels."""
    assert isinstance(weights.embedding, PanelWeight)
    assert isinstance(weights.head, PanelWeight)
    keeper = _Keeper()
    layers = (LayerWeightsLayout * len(weights.layers))(
        *(_layer(keeper, layer, window) for layer, window in zip(weights.layers, shape.windows, strict=True))
    )
    decoder = DecoderLayout(
        len(weights.layers), shape.hidden, shape.heads, shape.kv_heads, shape.head_dim, shape.ffn,
        shape.norm_eps, shape.attention_scale, *map(keeper.wide, angles), layers, keeper.panels(weights.embedding),
    )  # fmt: skip
    # A head of fewer bits is read as fast as its screen would be.
    screened = weights.head.form == PanelForm.BFLOAT16
    screen = ctypes.pointer(keeper.screen(screen_of(weights.head))) if screened else None
    head = HeadLayout(keeper.panels(weights.head), screen, keeper.wide(weights.final_norm), shape.norm_eps)
    return LaidOutDecoder(decoder, head, (layers, screen, *keeper.kept))


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


def aligned_bytes(count: int, alignment: int = 64) -> Tensor:
    """uint8 [count], zeros, that start on a cache line."""
    buffer = torch.zeros(count + alignment, dtype=torch.uint8)
    start = -buffer.data_ptr() % alignment
    return buffer[start : start + count]
