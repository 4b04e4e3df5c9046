"""A copy of the head in INT8, which tells where a best token can be: source/step/head_screen.h says how."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from quantgate_kernels.cpu.panels import pack, panel_bias, unpack
from quantgate_kernels.panel_weight import PANEL_OUTPUTS, PanelForm, PanelWeight
from quantgate_kernels.types import Int8DynamicWeight

LARGEST_CODE = 127
PANELS_AT_ONCE = 16
"""Few enough that what is made of them stays in a near cache."""
SMALLEST, GREATEST = 2.0**-100, 2.0**100
"""Far beyond what decides anything, and far enough from the limits of float32 for what is computed here."""
UNIT_ROUNDOFF = 2.0**-24
"""Of float32."""


@dataclass(frozen=True, slots=True)
class HeadScreen:
    """codes: the head [out, in] in QUADS. longest: the greatest finite length.

    lengths and losses: float32 [panels, 32], of each output's weights and of what they lose as codes, never too small.
    """

    codes: PanelWeight
    lengths: Tensor
    losses: Tensor
    longest: float


def screen_of(head: PanelWeight) -> HeadScreen:
    """Half of the head's bytes, and its own. Outputs with a weight that is NaN or huge count as infinitely long."""
    assert head.form == PanelForm.BFLOAT16
    outputs = head.outputs - torch.arange(0, head.outputs, PANELS_AT_ONCE * PANEL_OUTPUTS)
    chunks = zip(torch.split(head.data, PANELS_AT_ONCE), outputs.tolist(), strict=True)
    rounded = [
        _rounded(unpack(replace(head, data=data, outputs=min(left, len(data) * PANEL_OUTPUTS))))
        for data, left in chunks
    ]
    codes, scales, lengths, losses = (torch.cat(parts) for parts in zip(*rounded, strict=True))
    finite = lengths[lengths.isfinite()]
    longest = float(finite.max()) if len(finite) else 0.0
    return HeadScreen(pack(Int8DynamicWeight(codes, scales)), panel_bias(lengths), panel_bias(losses), longest)


def _rounded(weights: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """float32 [out, in] -> int8 codes of that shape, and float32 [out]: scales, lengths, losses."""
    largest = weights.abs().amax(dim=1)
    # False for a NaN.
    counts = largest < GREATEST
    if not counts.all():
        weights = weights.where(counts.unsqueeze(1), 0.0)
    scales = (largest / LARGEST_CODE).where(counts & (largest > LARGEST_CODE * SMALLEST), 0.0)
    # In units of the scale no square is too small for float32.
    units = scales.where(scales > 0, 1.0)
    numbers = weights / units.unsqueeze(1)
    codes = numbers.round()
    lengths = _length_at_most(numbers) * units
    losses = _length_at_most(numbers.sub_(codes)) * units
    return codes.to(torch.int8), scales, lengths.where(counts, math.inf), losses.where(counts, math.inf)


def _length_at_most(numbers: Tensor) -> Tensor:
    """float32 [out, in], each off by at most a unit roundoff of the greatest code -> [out], with room for roundings.

    A sum of n squares in float32, in any order, is off by at most n + 1 unit roundoffs of itself, and a little more.
    """
    inputs = numbers.shape[1]
    off = LARGEST_CODE * UNIT_ROUNDOFF * math.sqrt(inputs)
    lengths: Tensor = torch.linalg.vector_norm(numbers, dim=1)
    return lengths * (1 + 2 * (inputs + 8) * UNIT_ROUNDOFF) + 2 * off
