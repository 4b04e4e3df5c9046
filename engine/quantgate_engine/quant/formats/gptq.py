"""GPTQ's layout, as auto-gptq began it and gptqmodel goes on: `qweight`, `qzeros`, `scales`, `g_idx`.

For W of shape [out, in] and G groups:

    qweight  int32 [words of in, out]   codes packed along the inputs, densely, the first in the lowest bits
    qzeros   int32 [G, words of out]    zeros packed along the outputs, by one of two conventions (`gptq_zeros`)
    scales   float [G, out]
    g_idx    int32 [in]                 the group of each input, in any order; may be missing: groups in order

Inputs are stored in their own order, whatever the order in which they were quantized (`desc_act`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.quant.formats.bit_packing import pack_codes, unpack_codes, words_for
from quantgate_engine.quant.formats.gptq_zeros import (
    ZeroConvention,
    find_convention,
    stored_from_zeros,
    zeros_from_stored,
)
from quantgate_engine.quant.formats.input_groups import WHOLE_ROW, count_groups, listed_groups
from quantgate_engine.quant.formats.layer_tensors import LayerTensors
from quantgate_engine.quant.formats.storage import ReadLayer
from quantgate_engine.quant.grouped_codes import GroupedCodes


@dataclass(frozen=True, slots=True)
class GptqStorage:
    """bits: 2, 3, 4 or 8. group_size: -1 for one group of all inputs.

    convention: of the zeros, as the configuration states it. symmetric: None where the configuration does not say.
    lists_groups: inputs are in groups in an order that only g_idx tells.
    """

    bits: int
    group_size: int
    convention: ZeroConvention = ZeroConvention.MINUS_ONE
    symmetric: bool | None = None
    lists_groups: bool = False
    int8_activations: bool = False

    @property
    def summary(self) -> str:
        groups = "one group" if self.group_size == WHOLE_ROW else f"groups of {self.group_size}"
        return f"{self.bits}-bit GPTQ, {groups}"

    @property
    def tensor_names(self) -> tuple[str, ...]:
        return ("qweight", "qzeros", "scales", "g_idx")

    def read(self, tensors: LayerTensors, shape: tuple[int, int]) -> ReadLayer:
        outputs, inputs = shape
        groups = count_groups(inputs, self.group_size)
        why = f"{self.summary}, of {outputs} outputs and {inputs} inputs"
        packed = tensors.take("qweight", (torch.int32,), (words_for(inputs, self.bits), outputs), why)
        packed_zeros = tensors.take("qzeros", (torch.int32,), (groups, words_for(outputs, self.bits)), why)
        scales = tensors.take_scales("scales", (groups, outputs), why)
        stored_zeros = unpack_codes(packed_zeros, self.bits, outputs)
        convention, remark = find_convention(stored_zeros, self.bits, self.convention, self.symmetric, tensors)
        weight = GroupedCodes(
            codes=unpack_codes(packed, self.bits, inputs, dim=0).t(),
            scales=scales.t().contiguous(),
            zeros=zeros_from_stored(stored_zeros, self.bits, convention).t().contiguous(),
            bits=self.bits,
            group_of_input=listed_groups(tensors, "g_idx", inputs, self.group_size, why, needed=self.lists_groups),
        )
        return ReadLayer(weight, remark)


def write_gptq(weight: GroupedCodes, convention: ZeroConvention = ZeroConvention.MINUS_ONE) -> dict[str, Tensor]:
    """The layer's tensors by what follows its name and a dot. Scales keep their dtype; other readers expect float16."""
    stored_zeros = stored_from_zeros(weight.zeros, weight.bits, convention)
    return {
        "qweight": pack_codes(weight.codes.t(), weight.bits, dim=0),
        "qzeros": pack_codes(stored_zeros.t().contiguous(), weight.bits),
        "scales": weight.scales.t().contiguous(),
        "g_idx": weight.groups().to(torch.int32),
    }
