"""How far a product may be from its float64 value: bounds from the number formats, for products of every stored form.

Notation of Higham, Accuracy and Stability of Numerical Algorithms (2nd ed., chapter 3): u is the unit roundoff, and
n roundings in float32, in any order, are off by at most gamma_n = n u / (1 - n u) of the sum of magnitudes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

UNIT_FLOAT32 = 2.0**-24
UNIT_BFLOAT16 = 2.0**-8
SMALLEST_NORMAL = 2.0**-126
"""Of float32 and bfloat16 alike. Instructions for 16-bit products take smaller numbers for 0, and give 0 for them."""


def gamma(roundings: int) -> float:
    return roundings * UNIT_FLOAT32 / (1 - roundings * UNIT_FLOAT32)


@dataclass(frozen=True)
class Exact:
    """A product in float64 [T, out].

    magnitude: the sum of the magnitudes of its `terms`, which roundings are relative to.
    flushed: what its terms may be worth that have a subnormal number in them, or are one.
    """

    product: Tensor
    magnitude: Tensor
    flushed: Tensor
    terms: int


def exact_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Exact:
    """x [T, in], weight [out, in], bias [out]: of any dtype, taken as they are.

    A float64 sum of products of 16-bit numbers is off by 2^-53 of the magnitudes per term: nothing beside 2^-24.
    """
    wide_x, wide_weight = x.double(), weight.double()
    sizes_x, sizes_weight = wide_x.abs(), wide_weight.abs()
    product, magnitude = wide_x @ wide_weight.t(), sizes_x @ sizes_weight.t()
    small_x = sizes_x.where(sizes_x < SMALLEST_NORMAL, 0.0)
    small_weight = sizes_weight.where(sizes_weight < SMALLEST_NORMAL, 0.0)
    terms = x.shape[1] + 1
    flushed = small_x @ sizes_weight.t() + sizes_x @ small_weight.t() + terms * SMALLEST_NORMAL
    if bias is not None:
        product, magnitude = product + bias.double(), magnitude + bias.double().abs()
    return Exact(product, magnitude, flushed, terms)


def assert_product(found: Tensor, exact: Exact, *, scalings: int = 0) -> None:
    """found [T, out] in bfloat16 or float32.

    Products of two 16-bit numbers, or of such a number and a code, are exact in float32. Each addition rounds once, as
    does each of the `scalings`, multiplications by a scale that a term goes through. Then the result is rounded once.
    """
    bound = gamma(exact.terms + scalings) * exact.magnitude + exact.flushed
    if found.dtype == torch.bfloat16:
        bound = bound + UNIT_BFLOAT16 * (exact.product.abs() + bound)
    error = (found.double() - exact.product).abs()
    worst = float((error / bound).max())
    assert (error <= bound).all(), f"an error is {worst:.2f} times what roundings explain"
