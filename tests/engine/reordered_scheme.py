"""The scheme `int8-w8a8` with the inputs of every weight in an order of their own: the same products, to the bit."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor

from quantgate_engine.quant.precision import Precision
from quantgate_engine.quant.schemes import SCHEMES
from quantgate_kernels.types import Int8DynamicWeight, OrderedWeight, ReorderedWeight

SCHEME = "int8-w8a8"


def reorder_inputs(monkeypatch: pytest.MonkeyPatch, *, codes_too: bool = True) -> None:
    """From now on. codes_too: else each order is that of other codes, and products are other ones."""
    scheme = SCHEMES[SCHEME]

    def quantize(weight: Tensor, precision: Precision) -> ReorderedWeight[OrderedWeight]:
        order = torch.randperm(weight.shape[1], generator=torch.Generator().manual_seed(1)).to(torch.int32)
        stored = scheme.quantize(weight, precision)
        assert isinstance(stored, Int8DynamicWeight)
        codes = stored.codes[:, order].contiguous() if codes_too else stored.codes
        return ReorderedWeight(dataclasses.replace(stored, codes=codes), order)

    monkeypatch.setitem(SCHEMES, SCHEME, dataclasses.replace(scheme, quantize=quantize))
