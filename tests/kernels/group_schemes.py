"""Schemes of weights with groups as checkpoints of other tools have them, made here by rounding to the nearest code."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_engine.quant.precision import Precision, fastest_16_bit_precision
from quantgate_engine.quant.scheme import Scheme
from quantgate_kernels.int4_packing import pack_groups
from quantgate_kernels.types import Int4GroupWeight, Int8GroupWeight


def _asymmetric(weight: Tensor, bits: int, group_size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """weight [out, in] -> codes [out, in], scales and zeros [out, groups]; codes and zeros from 0 on."""
    groups, top = weight.unflatten(1, (-1, group_size)), 2**bits - 1
    least, most = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)
    scales = ((most - least) / top).clamp(min=2.0**-14).to(dtype)
    zeros = (-least / scales.float()).round().clamp(0, top)
    codes = ((groups / scales.float().unsqueeze(-1)).round() + zeros.unsqueeze(-1)).clamp(0, top)
    return codes.flatten(1), scales, zeros


def _int4_asymmetric(weight: Tensor, _: Precision) -> Int4GroupWeight:
    codes, scales, zeros = _asymmetric(weight, 4, 32, torch.float16)
    return pack_groups(codes.to(torch.uint8), scales, 32, zeros.to(torch.uint8))


def _int8_one_group(weight: Tensor, precision: Precision) -> Int8GroupWeight:
    codes, scales, zeros = _asymmetric(weight, 8, weight.shape[1], precision.compute)
    codes, zeros = ((numbers - 128).to(torch.int8) for numbers in (codes, zeros))
    return Int8GroupWeight(codes, scales, weight.shape[1], zeros)


GROUP_SCHEMES = {
    "int4-g32-asym": Scheme("int4-g32-asym", "", fastest_16_bit_precision, _int4_asymmetric),
    "int8-asym": Scheme("int8-asym", "one group of all inputs", fastest_16_bit_precision, _int8_one_group),
}
