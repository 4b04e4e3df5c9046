"""The two conventions by which GPTQ checkpoints store zeros, told apart by the values where those can tell.

`gptq`, the first: a stored value is zero - 1, cut to its bits, so that the zero 0 is stored as the greatest code.
`gptq_v2`: the zero itself. Checkpoints are known that name one and hold the other; read by the wrong one, every weight
is off by one step.
"""

from __future__ import annotations

from enum import StrEnum

from torch import Tensor

from quantgate_engine.quant.formats.layer_tensors import LayerTensors
from quantgate_engine.quant.grouped_codes import middle_code


class ZeroConvention(StrEnum):
    MINUS_ONE = "gptq"
    AS_IS = "gptq_v2"

    def offset(self) -> int:
        return 1 if self is ZeroConvention.MINUS_ONE else 0


def stored_from_zeros(zeros: Tensor, bits: int, convention: ZeroConvention) -> Tensor:
    """zeros uint8 in 0..2**bits - 1, any shape -> the values to store, of the same range."""
    return (zeros - convention.offset()) & _mask(bits)


def zeros_from_stored(stored: Tensor, bits: int, convention: ZeroConvention) -> Tensor:
    """The inverse of `stored_from_zeros`."""
    return (stored + convention.offset()) & _mask(bits)


def find_convention(
    stored: Tensor, bits: int, stated: ZeroConvention, symmetric: bool | None, tensors: LayerTensors
) -> tuple[ZeroConvention, str | None]:
    """-> (the convention of these stored zeros, a remark where it is not the stated one).

    stored: uint8, any shape. symmetric: by the configuration; None where it does not say. On a symmetric grid every
    zero is the middle code, and the one value that is stored tells the convention. Elsewhere the stated one holds.
    Raises ModelError where a symmetric grid has other zeros.
    """
    if symmetric is False:
        return stated, None
    least, greatest = int(stored.min()), int(stored.max())
    middle = middle_code(bits)
    by_value = {middle - 1: ZeroConvention.MINUS_ONE, middle: ZeroConvention.AS_IS}
    if least == greatest and least in by_value:
        found = by_value[least]
        return found, None if found is stated else _disagreement(tensors.place, stated, found, least)
    if symmetric is None:
        return stated, None
    choices = f"{middle - 1} ({ZeroConvention.MINUS_ONE}) or {middle} ({ZeroConvention.AS_IS})"
    raise tensors.error(
        "qzeros",
        f"holds values from {least} to {greatest}, though the quantization config says sym: true, with which "
        f"{bits}-bit zeros are all stored as {choices}; if the model was quantized asymmetrically, set sym to false "
        "there, else fetch it again",
    )


def _disagreement(place: str, stated: ZeroConvention, found: ZeroConvention, value: int) -> str:
    return (
        f"{place}: the quantization config says {stated}, but the zeros are all stored as {value}, as {found} does on "
        f"a symmetric grid; they are read as {found}."
    )


def _mask(bits: int) -> int:
    return (1 << bits) - 1
