"""The form in which C++ products read a weight: panels of 32 outputs, each from its front to its back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import torch
from torch import Tensor

PANEL_OUTPUTS = 32


class PanelForm(IntEnum):
    """How the numbers of a panel are coded; the values are those of `Form` in source/products/panels.h."""

    BFLOAT16 = 0
    INT8 = 1
    INT4 = 2
    QUADS = 3
    INT8_GROUPS = 4


@dataclass(frozen=True, slots=True)
class PanelWeight:
    """A weight in panels; source/products/panels.h says how each form lies in memory.

    data: uint8 [panels, bytes of a panel]. scales: None for BFLOAT16; bfloat16 or float16 [panels, groups, 32] for INT4
    and INT8_GROUPS; float32 [panels, 32] for INT8 and QUADS. zeros: [panels, groups, 32], uint8 for INT4 and int8 for
    INT8_GROUPS, or None where codes are symmetric. code_sums: int32 [panels, 32], each output's sum of codes, for
    QUADS only.
    label: of the weight that was packed. split: each panel holds 16 gates, then the 16 ups that go with them.
    """

    form: PanelForm
    data: Tensor
    scales: Tensor | None
    code_sums: Tensor | None
    outputs: int
    inputs: int
    group_size: int
    label: str
    split: bool = False
    zeros: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.outputs, self.inputs

    @property
    def has_half_scales(self) -> bool:
        """Whether the scales of groups are float16."""
        return self.scales is not None and self.scales.dtype == torch.float16

    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(tensor for tensor in (self.data, self.scales, self.zeros, self.code_sums) if tensor is not None)

    def addresses(self) -> tuple[int, int | None, int | None, int | None]:
        """Of data, scales, zeros and code sums."""
        return self.data.data_ptr(), _address(self.scales), _address(self.zeros), _address(self.code_sums)


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
