"""The formats once more, read value by value with Python's integers, from the descriptions of their layouts alone."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

Weight = list[list[float]]


def read_gptq(tensors: dict[str, Tensor], bits: int, *, stored_minus_one: bool) -> Weight:
    """[out][in]"""
    scales = tensors["scales"].float().tolist()
    groups = tensors["g_idx"].tolist()
    outputs, mask = len(scales[0]), (1 << bits) - 1
    columns = [_number(column) for column in tensors["qweight"].t().tolist()]
    zero_rows = [_number(row) for row in tensors["qzeros"].tolist()]
    weight = []
    for output in range(outputs):
        row = []
        for index, group in enumerate(groups):
            zero = _code(zero_rows[group], output, bits)
            if stored_minus_one:
                zero = (zero + 1) & mask
            row.append((_code(columns[output], index, bits) - zero) * scales[group][output])
        weight.append(row)
    return weight


def read_awq(tensors: dict[str, Tensor], group_size: int) -> Weight:
    """[out][in]"""
    place_of_output = [0, 4, 1, 5, 2, 6, 3, 7]
    codes, zeros = tensors["qweight"].tolist(), tensors["qzeros"].tolist()
    scales = tensors["scales"].float().tolist()

    def value(row: list[int], output: int) -> int:
        return (row[output // 8] >> (4 * place_of_output[output % 8])) & 15

    return [
        [
            (value(codes[index], output) - value(zeros[index // group_size], output))
            * scales[index // group_size][output]
            for index in range(len(codes))
        ]
        for output in range(len(scales[0]))
    ]


def read_packed(tensors: dict[str, Tensor], bits: int, groups: Sequence[int]) -> Weight:
    """groups: of each input. -> [out][in]"""
    outputs, inputs = tensors["weight_shape"].tolist()
    scales = tensors["weight_scale"].float().tolist()
    rows = [_number(row) for row in tensors["weight_packed"].tolist()]
    zero_columns = None
    if "weight_zero_point" in tensors:
        zero_columns = [_number(column) for column in tensors["weight_zero_point"].t().tolist()]
    half = 1 << (bits - 1)
    weight = []
    for output in range(outputs):
        row = []
        for index in range(inputs):
            group = groups[index]
            zero = _code(zero_columns[group], output, bits) - half if zero_columns else 0
            row.append((_code(rows[output], index, bits) - half - zero) * scales[output][group])
        weight.append(row)
    return weight


def read_bnb4(tensors: dict[str, Tensor], shape: tuple[int, int], block_size: int) -> list[float]:
    """Flat, of maxima that are not nested."""
    data, table = tensors["weight"].flatten().tolist(), tensors["weight.quant_map"].tolist()
    absmax = tensors["weight.absmax"].tolist()
    codes = [code for byte in data for code in (byte >> 4, byte & 15)]
    return [table[code] * absmax[index // block_size] for index, code in enumerate(codes[: shape[0] * shape[1]])]


def _number(words: Sequence[int]) -> int:
    """int32 words as one number, the first word lowest."""
    return sum((word & 0xFFFFFFFF) << (32 * index) for index, word in enumerate(words))


def _code(number: int, index: int, bits: int) -> int:
    return (number >> (bits * index)) & ((1 << bits) - 1)
