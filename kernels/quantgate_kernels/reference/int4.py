"""Products with symmetric INT4 weights in groups, and the tiled form that torch's CPU product reads.

Where torch has that product, the tiles are the one stored form (nothing is kept twice). Its layout belongs to the
instruction set that torch was dispatched to: `has_tiled_product` packs a probe and unpacks it again by the layout
written down here, and where the two differ, weights stay in `Int4GroupWeight` and are dequantized before a product.
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from quantgate_kernels.int4_packing import ZERO_CODE, dequantize_groups, pack_groups, unpack_groups
from quantgate_kernels.types import INT4_TILE_OUTPUTS, Int4GroupWeight, Int4TiledWeight

LOW_NIBBLES = 0x0F0F0F0F
TILED_GROUP_SIZES = (32, 64, 128, 256)


def multiply_dequantized_groups(x: Tensor, weight: Int4GroupWeight) -> Tensor:
    return F.linear(x, dequantize_groups(weight, x.dtype))


def has_tiled_product(weight: Int4GroupWeight) -> bool:
    return (
        weight.zeros is None
        and weight.packed.device.type == "cpu"
        and weight.scales.dtype == torch.bfloat16
        and weight.shape[0] % INT4_TILE_OUTPUTS == 0
        and weight.group_size in TILED_GROUP_SIZES
        and _tile_layout_is_known()
    )


def tile(weight: Int4GroupWeight) -> Int4TiledWeight:
    codes = unpack_groups(weight).to(torch.int32)
    outputs, inputs = weight.shape
    packed = torch._convert_weight_to_int4pack_for_cpu(codes, 1)
    scales = weight.scales.t()
    return Int4TiledWeight(
        tiles=packed.view(outputs // INT4_TILE_OUTPUTS, inputs, INT4_TILE_OUTPUTS // 2),
        scales_and_zeros=torch.stack((scales, torch.zeros_like(scales)), dim=-1).contiguous(),
        group_size=weight.group_size,
    )


def untile(weight: Int4TiledWeight) -> Int4GroupWeight:
    codes = torch.cat((weight.tiles & 15, weight.tiles >> 4), dim=-1).transpose(1, 2).reshape(weight.shape)
    return pack_groups(codes, weight.scales_and_zeros[..., 0].t().contiguous(), weight.group_size)


def reads_tiles(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.bfloat16


def multiply_tiled(x: Tensor, weight: Int4TiledWeight) -> Tensor:
    outputs, inputs = weight.shape
    packed = weight.tiles.view(outputs, inputs // 2)
    product: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, weight.group_size, weight.scales_and_zeros)
    return product


def multiply_dequantized_tiles(x: Tensor, weight: Int4TiledWeight) -> Tensor:
    """One product per tile, so that the dequantized weight is never reordered."""
    outputs, _ = weight.shape
    rows, inputs = x.shape
    tiles = dequantize_tiles(weight, x.dtype)
    products = torch.bmm(x.expand(tiles.shape[0], rows, inputs), tiles)
    return products.transpose(0, 1).reshape(rows, outputs)


def dequantize_tiles(weight: Int4TiledWeight, dtype: torch.dtype) -> Tensor:
    """-> [out / 64, in, 64] in `dtype`: (code - 8) * scale, rounded once; each tile transposed, as it is stored."""
    num_tiles, inputs, _ = weight.tiles.shape
    groups = inputs // weight.group_size
    # Eight codes at a time: torch's byte operations would take four times as many steps.
    words = weight.tiles.view(torch.int32)
    nibbles = torch.empty(num_tiles, inputs, 2, words.shape[-1], dtype=torch.int32, device=words.device)
    torch.bitwise_and(words, LOW_NIBBLES, out=nibbles[:, :, 0])
    torch.bitwise_and(words >> 4, LOW_NIBBLES, out=nibbles[:, :, 1])
    codes = nibbles.view(torch.int8).view(num_tiles, groups, weight.group_size, INT4_TILE_OUTPUTS).sub_(ZERO_CODE)
    scales = weight.scales_and_zeros[..., 0].reshape(groups, num_tiles, INT4_TILE_OUTPUTS).transpose(0, 1)
    # A strided scale would keep torch from its vectorised loop.
    return codes.to(dtype).mul_(scales.contiguous().unsqueeze(2)).view(num_tiles, inputs, INT4_TILE_OUTPUTS)


@cache
def _tile_layout_is_known() -> bool:
    if not hasattr(torch, "_convert_weight_to_int4pack_for_cpu"):
        return False
    outputs, inputs = 2 * INT4_TILE_OUTPUTS, 32
    codes = (torch.arange(outputs * inputs).view(outputs, inputs) * 7 // 3 % 16).to(torch.uint8)
    probe = pack_groups(codes, torch.ones(outputs, 1, dtype=torch.bfloat16), inputs)
    return bool(torch.equal(unpack_groups(untile(tile(probe))), codes))
