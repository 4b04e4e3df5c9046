"""Codes of 4 and 8 bits as the numbers they stand for, to the bit."""

from __future__ import annotations

import pytest
import torch

from quantgate_kernels.gpu.code_words import words_of_int4, words_of_int8
from quantgate_kernels.gpu.dequantize import dequantize
from quantgate_kernels.int4_packing import pack_groups
from quantgate_kernels.types import Int8ChannelWeight

SMALLEST = 6e-8
"""A scale that leaves float16 few digits or none."""


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("group", "inputs"), [(32, 96), (64, 320), (128, 256), (256, 512)])
def test_codes_in_groups(group: int, inputs: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 16, (37, inputs), generator=generator, dtype=torch.uint8)
    scales = torch.rand(37, inputs // group, generator=generator).to(dtype)
    scales[3] = SMALLEST
    scales[4] = 0
    meant = (codes.double() - 8) * scales.double().repeat_interleave(group, 1)
    assert torch.equal(dequantize(words_of_int4(pack_groups(codes, scales, group)), dtype), meant.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("inputs", [1, 100, 300])
def test_codes_of_a_channel(inputs: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(-127, 128, (37, inputs), generator=generator, dtype=torch.int8)
    scales = torch.rand(37, generator=generator).to(dtype)
    scales[3] = SMALLEST
    meant = codes.double() * scales.double()[:, None]
    assert torch.equal(dequantize(words_of_int8(Int8ChannelWeight(codes, scales)), dtype), meant.to(dtype))
