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

TILED_GROUP_SIZES = (32, 64, 128, 256)


def multiply_dequantized_groups(x: Tensor, weight: Int4GroupWeight) -> Tensor:
    return F.linear(x, dequantize_groups(weight, x.dtype))


def has_tiled_product(weight: Int4GroupWeight) -> bool:
    return (
        weight.packed.device.type == "cpu"
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


def multiply_tiled(x: Tensor, weight: Int4TiledWeight) -> Tensor:
    outputs, inputs = weight.shape
    packed = weight.tiles.view(outputs, inputs // 2)
    product: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, weight.group_size, weight.scales_and_zeros)
    return product


def multiply_dequantized_tiles(x: Tensor, weight: Int4TiledWeight) -> Tensor:
    """The transposed weight [in, out] is what the tiles hold in order, so that is what gets built and multiplied."""
    outputs, inputs = weight.shape
    half = INT4_TILE_OUTPUTS // 2
    by_input = weight.tiles.transpose(0, 1)
    codes = torch.empty(inputs, outputs // INT4_TILE_OUTPUTS, 2, half, dtype=x.dtype, device=x.device)
    codes[:, :, 0].copy_(by_input & 15)
    codes[:, :, 1].copy_(by_input >> 4)
    grouped = codes.view(inputs // weight.group_size, weight.group_size, outputs)
    scales = weight.scales_and_zeros[..., 0].unsqueeze(1)
    return x @ torch.addcmul(-ZERO_CODE * scales, grouped, scales, out=grouped).view(inputs, outputs)


@cache
def _tile_layout_is_known() -> bool:
    if not hasattr(torch, "_convert_weight_to_int4pack_for_cpu"):
        return False
    outputs, inputs = 2 * INT4_TILE_OUTPUTS, 32
    codes = (torch.arange(outputs * inputs).view(outputs, inputs) * 7 // 3 % 16).to(torch.uint8)
    probe = pack_groups(codes, torch.ones(outputs, 1, dtype=torch.bfloat16), inputs)
    return bool(torch.equal(unpack_groups(untile(tile(probe))), codes))
