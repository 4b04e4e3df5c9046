"""INT4 weights, 16-bit activations: symmetric round-to-nearest, one scale per group of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.precision import Precision, fastest_16_bit_precision
from quantgate_engine.quant.scheme import Scheme
from quantgate_kernels.int4_packing import ZERO_CODE, pack_groups
from quantgate_kernels.types import Int4GroupWeight

LARGEST_CODE = 15
# Codes 1..15 stand for -7..7; code 0, for -8, is left to weights that the rounding of a scale pushes out of them.
LARGEST_STEPS = 7
OFFERED_GROUP_SIZES = (32, 64, 128)


def quantize_int4_group(weight: Tensor, precision: Precision, *, group_size: int) -> Int4GroupWeight:
    """scale = max|w| / 7 over a group, rounded to the compute dtype first; code = round(w / scale) + 8 in 0..15.

    Codes are chosen against the rounded scale that the product will use. A group of zeros gets scale 1.
    The inputs must be a multiple of `group_size` (`check_group_size`).
    """
    outputs, inputs = weight.shape
    groups = weight.view(outputs, inputs // group_size, group_size)
    scales = (groups.abs().amax(dim=-1) / LARGEST_STEPS).to(precision.compute)
    scales = torch.where(scales == 0, torch.ones_like(scales), scales)
    codes = (groups / scales.float().unsqueeze(-1)).round_().add_(ZERO_CODE).clamp_(0, LARGEST_CODE)
    return pack_groups(codes.to(torch.uint8).view(outputs, inputs), scales, group_size)


def int4_group_scheme(group_size: int) -> Scheme:
    return Scheme(
        name=f"int4-g{group_size}",
        summary=f"INT4 weights, symmetric round-to-nearest, one scale per {group_size} inputs; 16-bit activations",
        precision=fastest_16_bit_precision,
        quantize=partial(quantize_int4_group, group_size=group_size),
        check_inputs=partial(check_group_size, group_size=group_size),
    )


def check_group_size(inputs: Mapping[str, int], *, group_size: int) -> None:
    """inputs: layer name -> number of inputs. Raises ConfigurationError, with the sizes that would do, for a misfit."""
    misfits = [f"{name} ({count} inputs)" for name, count in inputs.items() if count % group_size]
    if not misfits:
        return
    fitting = [str(size) for size in OFFERED_GROUP_SIZES if not any(count % size for count in inputs.values())]
    remedy = f"use a group size of {' or '.join(fitting)}" if fitting else "no group size on offer fits this model"
    raise ConfigurationError(
        f"Scheme int4-g{group_size} does not fit {', '.join(misfits)}: "
        f"inputs must be a multiple of {group_size}; {remedy}."
    )
