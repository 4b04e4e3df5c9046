"""Decodes of long contexts: parts of a context that threads share out, and int8 keys under unusual queries."""

from __future__ import annotations

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.prefill_steps import Shape, assert_near, attend, expected, in_codes, paged, random_data, rows_of

from quantgate_kernels.cpu.library import Functions, load_functions

# Around the least part of 64 tokens, the most parts of that size (16 x 64), and a part that is longer.
CONTEXTS = (1, 31, 64, 65, 600, 1024, 1025, 2100)
HEADS = ((9, 3, 64), (4, 1, 80), (5, 1, 96), (2, 2, 128), (3, 1, 40))


@pytest.fixture
def functions() -> dict[torch.dtype, Functions]:
    kernel_set_or_skip("cpu")
    return load_functions()


@pytest.fixture(params=[torch.bfloat16, torch.float32], ids=["bfloat16", "float32"])
def dtype(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture(params=[False, True], ids=["plain", "int8 kv"])
def int8(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.mark.parametrize("window", [0, 500])
@pytest.mark.parametrize(
    ("heads", "kv_heads", "head_dim"), [(9, 3, 64), (4, 1, 80), (5, 1, 96), (2, 2, 128), (3, 1, 40)]
)
def test_each_context_alone_and_all_together_on_any_number_of_threads(
    heads: int,
    kv_heads: int,
    head_dim: int,
    window: int,
    functions: dict[torch.dtype, Functions],
    dtype: torch.dtype,
    int8: bool,
) -> None:
    """A result is right, and the same bits whoever shares its context out: a lone one is cut for the threads."""
    shape = Shape(tuple((context - 1, 1) for context in CONTEXTS), heads, kv_heads, head_dim, 16, window)
    data = random_data(shape, dtype, 5)
    step = paged(shape, data, int8=int8)
    together = attend(functions[dtype], shape, step, threads=1)
    assert_near(together, expected(shape, in_codes(data) if int8 else data))
    for threads in (2, 3):
        assert torch.equal(attend(functions[dtype], shape, step, threads=threads), together)
    for sequence, context in enumerate(CONTEXTS):
        alone = Shape(((context - 1, 1),), heads, kv_heads, head_dim, 16, window)
        rows = rows_of(shape, sequence)
        own = type(data)(data.q[rows], (data.keys[sequence],), (data.values[sequence],))
        for threads in (1, 2, 5):
            attended = attend(functions[dtype], alone, paged(alone, own, int8=int8), threads=threads)
            assert torch.equal(attended, together[rows]), (context, threads)


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1.0, 1e12, 1e30])
def test_queries_of_any_magnitude_with_an_outlier(
    size: float, functions: dict[torch.dtype, Functions], int8: bool
) -> None:
    """Products of int8 keys are of whole numbers; what they cost in precision is less than bfloat16 results show."""
    shape = Shape(((299, 1),), heads=3, kv_heads=1, head_dim=64, scale=0.125 / size)
    data = random_data(shape, torch.bfloat16, 6)
    data.q[:, :, 7] = 255 / 256 * 16
    data.q[:] = data.q * size
    wanted = expected(shape, in_codes(data) if int8 else data)
    assert_near(attend(functions[torch.bfloat16], shape, paged(shape, data, int8=int8)), wanted)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_no_number_in_a_query_is_seen_in_its_own_head_alone(
    value: float, functions: dict[torch.dtype, Functions], dtype: torch.dtype, int8: bool
) -> None:
    shape = Shape(((599, 1),), heads=3, kv_heads=1, head_dim=64)
    data = random_data(shape, dtype, 7)
    clean = attend(functions[dtype], shape, paged(shape, data, int8=int8), threads=2).view(3, 64)
    data.q[:, 1, 5] = value
    found = attend(functions[dtype], shape, paged(shape, data, int8=int8), threads=2).view(3, 64)
    assert found[1].isnan().all()
    assert torch.equal(found[[0, 2]], clean[[0, 2]])
