"""AWQ's GEMM layout: `qweight`, `qzeros`, `scales`; 4 bits.

For W of shape [out, in] and G groups, eight outputs to a word:

    qweight  int32 [in, out / 8]
    qzeros   int32 [G, out / 8]   the zeros themselves
    scales   float [G, out]

Within a word the outputs stand in the order 0, 2, 4, 6, 1, 3, 5, 7, from the lowest bits up: output 2i + j in place
i + 4j, as the transpose of four rows of two.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.errors import ModelError
from quantgate_engine.quant.formats.bit_packing import pack_codes, unpack_codes
from quantgate_engine.quant.formats.input_groups import WHOLE_ROW, count_groups, groups_in_order
from quantgate_engine.quant.formats.layer_tensors import LayerTensors
from quantgate_engine.quant.formats.storage import ReadLayer
from quantgate_engine.quant.grouped_codes import GroupedCodes

BITS = 4
_OUTPUTS_IN_WORD = 8


@dataclass(frozen=True, slots=True)
class AwqStorage:
    """group_size: -1 for one group of all inputs."""

    group_size: int
    int8_activations: bool = False

    @property
    def summary(self) -> str:
        groups = "one group" if self.group_size == WHOLE_ROW else f"groups of {self.group_size}"
        return f"4-bit AWQ (GEMM), {groups}"

    @property
    def tensor_names(self) -> tuple[str, ...]:
        return ("qweight", "qzeros", "scales")

    def read(self, tensors: LayerTensors, shape: tuple[int, int]) -> ReadLayer:
        outputs, inputs = shape
        why = f"{self.summary}, of {outputs} outputs and {inputs} inputs"
        if outputs % _OUTPUTS_IN_WORD:
            raise ModelError(f"{tensors.place}: layer {tensors.layer}: {why} cannot be: outputs fill words by eights.")
        groups, words = count_groups(inputs, self.group_size), outputs // _OUTPUTS_IN_WORD
        packed = tensors.take("qweight", (torch.int32,), (inputs, words), why)
        packed_zeros = tensors.take("qzeros", (torch.int32,), (groups, words), why)
        scales = tensors.take_scales("scales", (groups, outputs), why)
        weight = GroupedCodes(
            codes=_unpack(packed).t().contiguous(),
            scales=scales.t().contiguous(),
            zeros=_unpack(packed_zeros).t().contiguous(),
            bits=BITS,
            group_of_input=groups_in_order(inputs, self.group_size),
        )
        return ReadLayer(weight)


def write_awq(weight: GroupedCodes) -> dict[str, Tensor]:
    """The layer's tensors by what follows its name and a dot, for 4 bits, outputs in eights and groups in order."""
    if weight.bits != BITS or weight.shape[0] % _OUTPUTS_IN_WORD or weight.group_of_input is not None:
        raise ModelError(
            f"AWQ checkpoints hold 4-bit weights with outputs in eights and groups of one size in order; this one has "
            f"{weight.bits} bits and {weight.shape[0]} outputs"
            f"{'' if weight.group_of_input is None else ', and groups out of order'}: write it as GPTQ instead."
        )
    return {
        "qweight": _pack(weight.codes.t()),
        "qzeros": _pack(weight.zeros.t()),
        "scales": weight.scales.t().contiguous(),
    }


def _pack(values: Tensor) -> Tensor:
    """uint8 [a, out] -> int32 [a, out / 8]"""
    rows, count = values.shape
    return pack_codes(values.reshape(rows, -1, 4, 2).transpose(-1, -2).reshape(rows, count), BITS)


def _unpack(words: Tensor) -> Tensor:
    """int32 [a, out / 8] -> uint8 [a, out]"""
    rows, count = words.shape[0], words.shape[1] * _OUTPUTS_IN_WORD
    return unpack_codes(words, BITS, count).view(rows, -1, 2, 4).transpose(-1, -2).reshape(rows, count)
