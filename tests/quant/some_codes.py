"""Random quantized weights for the tests of formats."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor

from quantgate_engine.quant.formats.input_groups import WHOLE_ROW, count_groups, groups_in_order
from quantgate_engine.quant.formats.layer_tensors import LayerTensors
from quantgate_engine.quant.grouped_codes import GroupedCodes, middle_code

LAYER = "model.layers.3.mlp.down_proj"


def stored(tensors: dict[str, Tensor]) -> LayerTensors:
    return LayerTensors("some/model", LAYER, tensors)


def some_codes(
    outputs: int,
    inputs: int,
    bits: int,
    group_size: int = WHOLE_ROW,
    *,
    symmetric: bool = False,
    shuffled: bool = False,
    seed: int = 0,
) -> GroupedCodes:
    """shuffled: inputs belong to groups in no order, as after GPTQ in the order of activations."""
    random = torch.Generator().manual_seed(seed)
    groups = count_groups(inputs, group_size)

    def some(columns: int) -> Tensor:
        return torch.randint(0, 1 << bits, (outputs, columns), dtype=torch.uint8, generator=random)

    zeros = torch.full((outputs, groups), middle_code(bits), dtype=torch.uint8) if symmetric else some(groups)
    in_order = groups_in_order(inputs, group_size)
    if shuffled:
        listed = torch.arange(inputs) // (inputs if group_size == WHOLE_ROW else group_size)
        in_order = listed[torch.randperm(inputs, generator=random)]
    return GroupedCodes(
        codes=some(inputs),
        scales=torch.randn(outputs, groups, generator=random).half(),
        zeros=zeros,
        bits=bits,
        group_of_input=in_order,
    )


group_sizes = st.sampled_from([WHOLE_ROW, 5, 8, 16, 32])
input_counts = st.integers(1, 70)
seeds = st.integers(0, 2**32)


def assert_same(found: GroupedCodes, expected: GroupedCodes) -> None:
    """The same codes, scales and zeros to the bit, and the same group of each input, however it is told."""
    assert found.bits == expected.bits
    for name in ("codes", "scales", "zeros"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.dtype == other.dtype
        assert one.is_contiguous()
        assert torch.equal(one, other), name
    assert torch.equal(found.groups(), expected.groups())
