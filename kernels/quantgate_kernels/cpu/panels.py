"""Weights into panels and back: the layouts of source/products/panels.h, written in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor

from quantgate_kernels.huge_pages import WEIGHT_MEMORY
from quantgate_kernels.int4_packing import ZERO_CODE, unpack_groups
from quantgate_kernels.panel_weight import PANEL_OUTPUTS, PanelForm, PanelWeight
from quantgate_kernels.types import (
    DenseWeight,
    Int4GroupWeight,
    Int8ChannelWeight,
    Int8DynamicWeight,
    Int8GroupWeight,
    LinearWeight,
    OrderedWeight,
)

UNIT_OUTPUTS = 16
GROUP_STEP = 8
"""Inputs of one step along a panel with groups."""
GROUP_SCALES = (torch.bfloat16, torch.float16)


def pack(weight: OrderedWeight, *, split: bool = False) -> PanelWeight:
    """`weight` [out, in], as a scheme makes it, in panels; a dense one must be bfloat16.

    Groups must hold a multiple of 8 inputs, or all of them, and have scales of 16 bits (`has_panels`).

    split: the first half of the outputs are gates and the second half ups; each panel gets 16 of both, so that one
    product has what silu(gate) * up needs. The outputs must then be a multiple of 2.
    """
    return _PACKERS[type(weight)](weight, split)


def has_panels(weight: LinearWeight) -> TypeGuard[OrderedWeight]:
    """Whether `pack` takes the weight."""
    if isinstance(weight, Int4GroupWeight | Int8GroupWeight):
        whole_steps = weight.group_size % GROUP_STEP == 0 or weight.group_size == weight.shape[1]
        return whole_steps and weight.scales.dtype in GROUP_SCALES
    return type(weight) in _PACKERS


def unpack(weight: PanelWeight) -> Tensor:
    """float32 [out, in]: what the panels stand for."""
    numbers = _from_data(weight)[..., : weight.inputs]
    if weight.form in (PanelForm.INT4, PanelForm.INT8_GROUPS):
        zeros = ZERO_CODE if weight.form == PanelForm.INT4 else 0
        numbers = numbers - (zeros if weight.zeros is None else _for_inputs(weight.zeros, weight.group_size))
        assert weight.scales is not None
        numbers = numbers * _for_inputs(weight.scales, weight.group_size)
    elif weight.scales is not None:
        numbers = numbers * weight.scales.unsqueeze(2)
    return _from_panels(numbers, weight.outputs, weight.split)


def rows_of_panels(weight: PanelWeight, rows: Tensor) -> Tensor:
    """int64 [R], outputs of a weight of BFLOAT16 that is not split -> bfloat16 [R, in]."""
    assert weight.form == PanelForm.BFLOAT16
    assert not weight.split
    steps = weight.data.view(torch.bfloat16).view(len(weight.data), -1, PANEL_OUTPUTS, 2)
    return steps[rows // PANEL_OUTPUTS, :, rows % PANEL_OUTPUTS].flatten(1)[:, : weight.inputs]


def _from_data(weight: PanelWeight) -> Tensor:
    """float32 [panels, 32, inputs], padding included: numbers or codes as they are stored."""
    if weight.form == PanelForm.BFLOAT16:
        return _from_steps(weight.data.view(torch.int16).view(torch.bfloat16), 2).float()
    if weight.form == PanelForm.INT4:
        return _from_words(weight.data).float()
    return _from_steps(weight.data.view(torch.int8), 4 if weight.form == PanelForm.QUADS else 2).float()


def _for_inputs(of_groups: Tensor, group_size: int) -> Tensor:
    """[panels, groups, 32] -> float32 [panels, 32, inputs]."""
    return of_groups.float().transpose(1, 2).repeat_interleave(group_size, dim=2)


def panel_bias(bias: Tensor, *, split: bool = False) -> Tensor:
    """[out] -> float32 [panels, 32], in the order of a weight's panels."""
    return _to_panels(bias.float().unsqueeze(1), split).squeeze(2).contiguous()


def joined_halves(products: Tensor, outputs: int) -> Tensor:
    """[T, panels * 32] of a weight that is split -> [T, out]: all gates, then all ups."""
    halves = products.view(len(products), -1, 2, UNIT_OUTPUTS).unbind(2)
    return torch.cat([half.flatten(1)[:, : outputs // 2] for half in halves], dim=1)


def _pack_dense(weight: DenseWeight, split: bool) -> PanelWeight:
    assert weight.weight.dtype == torch.bfloat16
    outputs, inputs = weight.shape
    data = _to_steps(_to_panels(weight.weight, split), 2)
    return PanelWeight(PanelForm.BFLOAT16, _as_bytes(data), None, None, outputs, inputs, 0, weight.label, split)


def _pack_int8(weight: Int8ChannelWeight, split: bool) -> PanelWeight:
    outputs, inputs = weight.shape
    data = _to_steps(_to_panels(weight.codes, split), 2)
    scales = panel_bias(weight.scales, split=split)
    return PanelWeight(PanelForm.INT8, _as_bytes(data), scales, None, outputs, inputs, 0, weight.label, split)


def _pack_quads(weight: Int8DynamicWeight, split: bool) -> PanelWeight:
    outputs, inputs = weight.shape
    codes = _to_panels(weight.codes, split)
    data, sums = _to_steps(codes, 4), codes.sum(dim=2, dtype=torch.int32)
    scales = panel_bias(weight.scales, split=split)
    return PanelWeight(PanelForm.QUADS, _as_bytes(data), scales, sums, outputs, inputs, 0, weight.label, split)


def _pack_int4(weight: Int4GroupWeight, split: bool) -> PanelWeight:
    data = _to_words(_padded_inputs(_to_panels(unpack_groups(weight), split), GROUP_STEP))
    return _with_groups(PanelForm.INT4, data, weight, split)


def _pack_int8_groups(weight: Int8GroupWeight, split: bool) -> PanelWeight:
    data = _to_steps(_padded_inputs(_to_panels(weight.codes, split), GROUP_STEP), 2)
    return _with_groups(PanelForm.INT8_GROUPS, data, weight, split)


def _with_groups(form: PanelForm, data: Tensor, weight: Int4GroupWeight | Int8GroupWeight, split: bool) -> PanelWeight:
    def by_group(numbers: Tensor) -> Tensor:
        return _to_panels(numbers, split).transpose(1, 2).contiguous()

    assert has_panels(weight)
    scales, zeros = by_group(weight.scales), None if weight.zeros is None else by_group(weight.zeros)
    return PanelWeight(
        form, _as_bytes(data), scales, None, *weight.shape, weight.group_size, weight.label, split, zeros
    )


_PACKERS: dict[type, Callable[[Any, bool], PanelWeight]] = {
    DenseWeight: _pack_dense,
    Int8ChannelWeight: _pack_int8,
    Int8DynamicWeight: _pack_quads,
    Int8GroupWeight: _pack_int8_groups,
    Int4GroupWeight: _pack_int4,
}


def _to_panels(rows: Tensor, split: bool) -> Tensor:
    """[out, n] -> [panels, 32, n]; what is missing of the last panel is zeros."""
    inputs = rows.shape[1]
    if split:
        halves = (_padded_rows(half, UNIT_OUTPUTS).reshape(-1, UNIT_OUTPUTS, inputs) for half in rows.chunk(2))
        return torch.cat(tuple(halves), dim=1)
    return _padded_rows(rows, PANEL_OUTPUTS).reshape(-1, PANEL_OUTPUTS, inputs)


def _from_panels(panels: Tensor, outputs: int, split: bool) -> Tensor:
    if split:
        halves = (half.flatten(0, 1)[: outputs // 2] for half in torch.split(panels, UNIT_OUTPUTS, dim=1))
        return torch.cat(tuple(halves))
    return panels.flatten(0, 1)[:outputs]


def _to_steps(panels: Tensor, step: int) -> Tensor:
    """[panels, 32, inputs] -> [panels, steps, 32, step]."""
    padded = _padded_inputs(panels, step)
    return padded.reshape(len(panels), PANEL_OUTPUTS, -1, step).transpose(1, 2).contiguous()


def _from_steps(data: Tensor, step: int) -> Tensor:
    """[panels, numbers] -> [panels, 32, inputs], padding included."""
    return data.view(len(data), -1, PANEL_OUTPUTS, step).transpose(1, 2).flatten(2)


def _to_words(codes: Tensor) -> Tensor:
    """uint8 [panels, 32, inputs] in 0..15 -> [panels, steps, 32, 2 inputs, 2 bytes].

    Nibble n of the word of input j holds the code of input 2 n + j of the step.
    """
    nibbles = codes.view(len(codes), PANEL_OUTPUTS, -1, 4, 2).permute(0, 2, 1, 4, 3)
    low, high = nibbles[..., 0::2], nibbles[..., 1::2]
    return (low | (high << 4)).contiguous()


def _from_words(data: Tensor) -> Tensor:
    """uint8 [panels, bytes] -> codes [panels, 32, inputs]."""
    words = data.view(len(data), -1, PANEL_OUTPUTS, 2, 2)
    nibbles = torch.stack((words & 15, words >> 4), dim=-1).flatten(4)
    return nibbles.permute(0, 2, 1, 4, 3).flatten(2)


def _padded_rows(rows: Tensor, multiple: int) -> Tensor:
    return F.pad(rows, (0, 0, 0, -rows.shape[0] % multiple))


def _padded_inputs(panels: Tensor, multiple: int) -> Tensor:
    return F.pad(panels, (0, -panels.shape[2] % multiple))


def _as_bytes(data: Tensor) -> Tensor:
    return WEIGHT_MEMORY.copy_of(data.flatten(1)).view(torch.uint8)
