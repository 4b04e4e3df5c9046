"""The layouts of compressed-tensors for integers: `pack-quantized` and `int-quantized`.

For W of shape [out, in] and G groups (1: one scale per output; a single scale for all is one per output, repeated):

    pack-quantized
    weight_packed      int32 [out, words of in]
    weight_scale       float [out, G] or [1]
    weight_zero_point  int32 [words of out, G], if asymmetric
    weight_shape       int [2], [out, in]

    int-quantized
    weight             int8 [out, in]
    weight_scale       float [out, G] or [1]
    weight_zero_point  int8 [out, G] or [1], if asymmetric

    both
    weight_g_idx       int [in], the group of each input, if groups are not in order

Values are signed; packed ones are stored with 2**(bits - 1) added, which makes them codes. They are packed densely, as
GPTQ's are. Older versions of compressed-tensors split no code over two words, which the number of words tells, or did
not pack zeros, which their dtype tells.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.errors import ModelError
from quantgate_engine.quant.formats.bit_packing import DENSE, PADDED, WORD_BITS, WordLayout, pack_codes
from quantgate_engine.quant.formats.input_groups import WHOLE_ROW, count_groups, groups_in_order, listed_groups
from quantgate_engine.quant.formats.layer_tensors import LayerTensors
from quantgate_engine.quant.formats.storage import ReadLayer
from quantgate_engine.quant.grouped_codes import GroupedCodes, middle_code

_INDEX_DTYPES = (torch.int32, torch.int64)


@dataclass(frozen=True, slots=True)
class GroupedStorage:
    """bits: 2 to 8. group_size: -1 for one scale per output.

    one_scale: a single scale stands for the whole weight. lists_groups: inputs are in groups in an order that only
    weight_g_idx tells.
    """

    bits: int
    group_size: int
    symmetric: bool = True
    one_scale: bool = False
    lists_groups: bool = False
    int8_activations: bool = False


@dataclass(frozen=True, slots=True)
class PackedStorage(GroupedStorage):
    """`pack-quantized`: codes in words."""

    @property
    def summary(self) -> str:
        return f"{_bits_and_groups(self)} of compressed-tensors, packed"

    @property
    def tensor_names(self) -> tuple[str, ...]:
        return ("weight_packed", "weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx")

    def read(self, tensors: LayerTensors, shape: tuple[int, int]) -> ReadLayer:
        outputs, inputs = shape
        why = _why(self, shape)
        _require_stated_shape(tensors, shape, why)
        layout = self._layout(tensors, inputs)
        words = layout.words_for(inputs, self.bits)
        packed = tensors.take("weight_packed", (torch.int32,), (outputs, words), why)
        scales = _take_scales(self, tensors, shape, why)
        if self.symmetric:
            zeros = _middle_zeros(self, scales, tensors)
        else:
            zeros = self._zeros(tensors, outputs, scales, layout, why)
        return ReadLayer(
            GroupedCodes(
                codes=layout.unpack(packed, self.bits, inputs),
                scales=scales,
                zeros=zeros,
                bits=self.bits,
                group_of_input=_groups(self, tensors, inputs, why),
            )
        )

    def _layout(self, tensors: LayerTensors, inputs: int) -> WordLayout:
        """Dense, unless only the padded layout has this number of words."""
        packed = tensors.tensors.get("weight_packed")
        if packed is None or packed.ndim != 2 or packed.shape[1] == DENSE.words_for(inputs, self.bits):
            return DENSE
        return PADDED if packed.shape[1] == PADDED.words_for(inputs, self.bits) else DENSE

    def _zeros(self, tensors: LayerTensors, outputs: int, scales: Tensor, layout: WordLayout, why: str) -> Tensor:
        """-> uint8 [out, G]"""
        stored = tensors.tensors.get("weight_zero_point")
        if stored is not None and stored.dtype == torch.int8:
            values = tensors.take("weight_zero_point", (torch.int8,), tuple(scales.shape), why)
            return _codes(values, self.bits, tensors, "weight_zero_point")
        shape = (layout.words_for(outputs, self.bits), scales.shape[1])
        packed = tensors.take("weight_zero_point", (torch.int32,), shape, why)
        return layout.unpack(packed, self.bits, outputs, dim=0).contiguous()


@dataclass(frozen=True, slots=True)
class IntStorage(GroupedStorage):
    """`int-quantized`: whole bytes."""

    @property
    def summary(self) -> str:
        return f"{_bits_and_groups(self)} of compressed-tensors, in bytes"

    @property
    def tensor_names(self) -> tuple[str, ...]:
        return ("weight", "weight_scale", "weight_zero_point", "weight_g_idx")

    def read(self, tensors: LayerTensors, shape: tuple[int, int]) -> ReadLayer:
        why = _why(self, shape)
        values = tensors.take("weight", (torch.int8,), shape, why)
        scales = _take_scales(self, tensors, shape, why)
        if self.symmetric:
            zeros = _middle_zeros(self, scales, tensors)
        else:
            stored = tensors.take("weight_zero_point", (torch.int8,), self._zeros_shape(scales), why)
            zeros = _codes(stored, self.bits, tensors, "weight_zero_point").expand(scales.shape).contiguous()
        return ReadLayer(
            GroupedCodes(
                codes=_codes(values, self.bits, tensors, "weight"),
                scales=scales,
                zeros=zeros,
                bits=self.bits,
                group_of_input=_groups(self, tensors, shape[1], why),
            )
        )

    def _zeros_shape(self, scales: Tensor) -> tuple[int, ...]:
        return (1,) if self.one_scale else tuple(scales.shape)


def write_packed(weight: GroupedCodes) -> dict[str, Tensor]:
    """The layer's tensors of `pack-quantized`, by what follows its name and a dot. Scales keep their dtype.

    Zeros are written where the grid is not symmetric, the list of groups where inputs are not in the order of groups.
    """
    tensors = {
        "weight_packed": pack_codes(weight.codes, weight.bits),
        "weight_scale": weight.scales.contiguous(),
        "weight_shape": torch.tensor(weight.shape),
    }
    if not weight.is_symmetric:
        tensors["weight_zero_point"] = pack_codes(weight.zeros, weight.bits, dim=0)
    if weight.group_of_input is not None:
        tensors["weight_g_idx"] = weight.group_of_input.to(torch.int32)
    return tensors


def write_int(weight: GroupedCodes) -> dict[str, Tensor]:
    """The layer's tensors of `int-quantized`, for groups of one size in order."""
    if weight.group_of_input is not None:
        raise ModelError(
            "int-quantized checkpoints hold groups of one size in order; this weight's are not: write it as "
            "pack-quantized instead."
        )
    tensors = {"weight": _signed(weight.codes, weight.bits), "weight_scale": weight.scales.contiguous()}
    if not weight.is_symmetric:
        tensors["weight_zero_point"] = _signed(weight.zeros, weight.bits)
    return tensors


def _bits_and_groups(storage: PackedStorage | IntStorage) -> str:
    if storage.one_scale:
        groups = "one scale"
    else:
        groups = "one scale per output" if storage.group_size == WHOLE_ROW else f"groups of {storage.group_size}"
    return f"{storage.bits}-bit weights, {groups}, {'symmetric' if storage.symmetric else 'asymmetric'},"


def _why(storage: PackedStorage | IntStorage, shape: tuple[int, int]) -> str:
    return f"{storage.summary}, of {shape[0]} outputs and {shape[1]} inputs"


def _groups(storage: PackedStorage | IntStorage, tensors: LayerTensors, inputs: int, why: str) -> Tensor | None:
    listed = tensors.tensors.get("weight_g_idx")
    if listed is not None and not storage.lists_groups and bool((listed == -1).any()):
        # The library's own mark of a list that was never filled.
        return groups_in_order(inputs, storage.group_size)
    return listed_groups(tensors, "weight_g_idx", inputs, storage.group_size, why, needed=storage.lists_groups)


def _require_stated_shape(tensors: LayerTensors, shape: tuple[int, int], why: str) -> None:
    if "weight_shape" not in tensors:
        return
    stated = tensors.take("weight_shape", _INDEX_DTYPES, (2,), why).tolist()
    if stated != list(shape):
        raise tensors.error("weight_shape", f"says {stated}; config.json calls for {list(shape)}: the file is damaged")


def _take_scales(
    storage: PackedStorage | IntStorage, tensors: LayerTensors, shape: tuple[int, int], why: str
) -> Tensor:
    """-> [out, G]"""
    outputs, inputs = shape
    if storage.one_scale:
        return tensors.take_scales("weight_scale", (1,), why).expand(outputs, 1).contiguous()
    return tensors.take_scales("weight_scale", (outputs, count_groups(inputs, storage.group_size)), why)


def _middle_zeros(storage: PackedStorage | IntStorage, scales: Tensor, tensors: LayerTensors) -> Tensor:
    """Raises ModelError where zeros are stored that no symmetric grid has."""
    middle = middle_code(storage.bits)
    stored = tensors.tensors.get("weight_zero_point")
    if stored is not None and stored.any() and not _are_middle(stored, storage.bits, middle):
        raise tensors.error(
            "weight_zero_point",
            "holds zeros that differ, though the quantization config says symmetric: true; if the model was quantized "
            "asymmetrically, set symmetric to false there, else fetch it again",
        )
    return torch.full(scales.shape, middle, dtype=torch.uint8, device=scales.device)


def _are_middle(stored: Tensor, bits: int, middle: int) -> bool:
    """Packed by either layout, each the middle code; the last word of a column may have room left, which is 0."""
    if stored.dtype != torch.int32 or stored.ndim != 2:
        return False
    codes_per_word = {DENSE: WORD_BITS / bits, PADDED: WORD_BITS // bits}
    unpacked = (
        layout.unpack(stored, bits, int(stored.shape[0] * count), dim=0) for layout, count in codes_per_word.items()
    )
    return any(bool(((codes == middle) | (codes == 0)).all()) for codes in unpacked)


def _codes(values: Tensor, bits: int, tensors: LayerTensors, name: str) -> Tensor:
    """int8 values -> uint8 codes. Raises ModelError for a value that these bits cannot hold."""
    middle = middle_code(bits)
    least, greatest = (int(extreme) for extreme in torch.aminmax(values))
    if least < -middle or greatest >= middle:
        raise tensors.error(
            name,
            f"holds values from {least} to {greatest}; {bits} bits hold {-middle} to {middle - 1}: the file is "
            "damaged, or its quantization config is another model's",
        )
    # Modulo 256 the sum is right for all bits, 8 among them.
    return values.view(torch.uint8) + middle


def _signed(codes: Tensor, bits: int) -> Tensor:
    """uint8 codes -> int8 values, as `_codes` takes them back."""
    return (codes - middle_code(bits)).view(torch.int8)
