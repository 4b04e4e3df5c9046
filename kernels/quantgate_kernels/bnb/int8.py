"""LLM.int8() by bitsandbytes: activations become INT8 token by token, but inputs with outliers stay in 16 bits."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_kernels.bnb.library import bnb_functions, bnb_operators
from quantgate_kernels.bnb.weights import BnbInt8Weight

LARGEST_CODE = 127
OUTLIER_THRESHOLD = 6.0
"""That of the paper, and what transformers sets where `load_in_8bit` says no other."""


def quantize(weight: Tensor) -> BnbInt8Weight:
    """weight [out, in]: code = round(w * 127 / max|w| of the output), of w in float16, as its layers store it."""
    codes, maxima, _ = bnb_functions().int8_vectorwise_quant(weight.to(torch.float16))
    return BnbInt8Weight(codes, maxima)


def multiply(x: Tensor, weight: BnbInt8Weight) -> Tensor:
    """x [T, in] -> [T, out] in x's dtype: what `Linear8bitLt` computes, without its warning at each other dtype.

    An input that is 6 or more in some row is multiplied in x's dtype in all rows. So a row is not the same bits beside
    others that have outliers where it has none: they take it closer to the product in 16 bits.
    """
    codes, maxima, outliers = bnb_functions().int8_vectorwise_quant(x.to(torch.float16), threshold=OUTLIER_THRESHOLD)
    product: Tensor
    product, _ = bnb_operators().int8_mixed_scaled_mm(x, codes, weight.codes, maxima, weight.maxima, outliers, None)
    return product


def dequantize(weight: BnbInt8Weight) -> Tensor:
    """float32 [out, in]"""
    return weight.codes.float() * (weight.maxima / LARGEST_CODE).unsqueeze(1)
