"""NF4 by bitsandbytes: 4-bit codes of a table, one scale per 64 inputs, scales not quantized themselves."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from quantgate_kernels.bnb.library import bnb_functions, bnb_operators
from quantgate_kernels.bnb.weights import NF4_BLOCK, BnbNf4TiledWeight, BnbNf4Weight

NF4_TABLE = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)
"""Quantiles of the normal distribution."""

KIND = "nf4"
TILE_OUTPUTS = 32


def quantize(weight: Tensor) -> BnbNf4Weight:
    """weight [out, in], `in` a multiple of 64: the nearest codes of each block over its greatest magnitude."""
    outputs, inputs = weight.shape
    packed, state = bnb_functions().quantize_4bit(
        weight, blocksize=NF4_BLOCK, quant_type=KIND, compress_statistics=False
    )
    return BnbNf4Weight(packed.view(outputs, inputs // 2), state.absmax.view(outputs, inputs // NF4_BLOCK))


def multiply(x: Tensor, weight: BnbNf4Weight) -> Tensor:
    """x [T, in] -> [T, out] in x's dtype."""
    product: Tensor = bnb_operators().gemm_4bit(
        x.contiguous(), weight.packed.view(-1, 1), list(weight.shape), weight.maxima.view(-1), NF4_BLOCK, KIND
    )
    return product


def has_tiled_product(weight: BnbNf4Weight, compute: torch.dtype) -> bool:
    """Where `Linear4bit` puts its weight into this order to evaluate it."""
    on_cpu = weight.packed.device.type == "cpu" and compute == torch.bfloat16
    return on_cpu and weight.shape[0] % TILE_OUTPUTS == 0 and _tiles_are_read()


def tile(weight: BnbNf4Weight) -> BnbNf4TiledWeight:
    outputs, inputs = weight.shape
    codes = _unpacked(weight.packed).view(outputs // TILE_OUTPUTS, TILE_OUTPUTS, inputs // 2, 2)
    low, high = codes.transpose(1, 2).reshape(outputs // TILE_OUTPUTS, inputs // 2, 2, TILE_OUTPUTS).unbind(2)
    return BnbNf4TiledWeight(high << 4 | low, weight.maxima.T.to(torch.bfloat16).contiguous())


def multiply_tiled(x: Tensor, weight: BnbNf4TiledWeight) -> Tensor:
    """x bfloat16 [T, in] -> bfloat16 [T, out], summed in float32 and rounded once; a row is the same in any batch."""
    outputs, inputs = weight.shape
    product: Tensor = bnb_operators().gemv_4bit(
        x.contiguous(),
        weight.tiles.view(outputs, inputs // 2),
        [outputs, inputs],
        weight.maxima,
        _table(weight.tiles.device),
        NF4_BLOCK,
    )
    return product


def dequantize(weight: BnbNf4Weight) -> Tensor:
    """float32 [out, in]"""
    return _scaled(_unpacked(weight.packed), weight.maxima, _table(weight.packed.device))


def dequantize_tiled(weight: BnbNf4TiledWeight) -> Tensor:
    """float32 [out, in]"""
    outputs, inputs = weight.shape
    codes = torch.cat((weight.tiles & 15, weight.tiles >> 4), dim=2)
    codes = codes.view(-1, inputs // 2, TILE_OUTPUTS, 2).transpose(1, 2).reshape(outputs, inputs)
    return _scaled(codes, weight.maxima.T, _table(codes.device).to(torch.bfloat16))


@cache
def _tiles_are_read() -> bool:
    """The order is no part of bitsandbytes' public interface: a product with known numbers decides, not a version."""
    if not bnb_functions().has_avx512bf16():
        return False
    spread = torch.arange(2 * TILE_OUTPUTS * 2 * NF4_BLOCK).view(2 * TILE_OUTPUTS, -1)
    weight = tile(quantize((spread * 97 % 101 - 50).float()))
    numbers = dequantize_tiled(weight).T.to(torch.bfloat16)
    return torch.equal(multiply_tiled(torch.eye(2 * NF4_BLOCK, dtype=torch.bfloat16), weight), numbers)


def _unpacked(packed: Tensor) -> Tensor:
    """uint8 [out, in / 2] -> codes uint8 [out, in]."""
    return torch.stack((packed >> 4, packed & 15), dim=-1).flatten(1)


def _scaled(codes: Tensor, maxima: Tensor, table: Tensor) -> Tensor:
    return table.float()[codes.int()] * maxima.float().repeat_interleave(NF4_BLOCK, dim=1)


def _table(device: torch.device) -> Tensor:
    return torch.tensor(NF4_TABLE, device=device)
