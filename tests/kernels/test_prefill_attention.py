"""Attention of prefills, decodes and both in one step, in place over the paged cache, against float64."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.prefill_steps import (
    Data,
    Shape,
    Step,
    assert_near,
    attend,
    expected,
    in_codes,
    paged,
    random_data,
    rows_of,
    sequences_of,
    visible,
)

from quantgate_kernels.cpu.library import Functions, load_functions

DTYPES = (torch.bfloat16, torch.float32)
HEADS = ((1, 1), (9, 3), (8, 1), (4, 4))
HEAD_DIMS = (16, 40, 64, 80, 128)
BLOCK_SIZES = (1, 8, 16, 64)
# Root mean square error over that of the result: with weights and results in bfloat16, and in float32 throughout.
TYPICAL_ERROR = {torch.bfloat16: 2.0**-8, torch.float32: 2e-6}


@pytest.fixture
def functions() -> dict[torch.dtype, Functions]:
    kernel_set_or_skip("cpu")
    return load_functions()


@pytest.fixture(params=DTYPES, ids=["bfloat16", "float32"])
def dtype(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture(params=[False, True], ids=["plain", "int8 kv"])
def int8(request: pytest.FixtureRequest) -> object:
    return request.param


def random_shape(seed: int) -> Shape:
    """A step of up to four sequences, some of which decode."""
    choose = random.Random(seed)
    heads, kv_heads = choose.choice(HEADS)
    sequences = tuple(
        (choose.choice((0, 0, choose.randrange(1, 300))), choose.choice((1, choose.randrange(2, 40), 300)))
        for _ in range(choose.randrange(1, 5))
    )
    window = choose.choice((0, 0, choose.randrange(1, 400)))
    return Shape(sequences, heads, kv_heads, choose.choice(HEAD_DIMS), choose.choice(BLOCK_SIZES), window)


@pytest.mark.parametrize("seed", range(24))
def test_any_step(seed: int, functions: dict[torch.dtype, Functions], dtype: torch.dtype, int8: bool) -> None:
    shape = random_shape(seed)
    data = random_data(shape, dtype, seed, spread=random.Random(seed).choice((0.3, 1.0, 4.0)))
    wanted = expected(shape, in_codes(data) if int8 else data)
    attended = attend(functions[dtype], shape, paged(shape, data, int8=int8, seed=seed), threads=2)
    assert_near(attended, wanted)
    error = (attended.double() - wanted.attended).square().mean().sqrt()
    assert error <= TYPICAL_ERROR[dtype] * wanted.attended.square().mean().sqrt()


@pytest.mark.parametrize("past", [0, 1, 63, 64, 200])
@pytest.mark.parametrize("rows", [2, 3, 5, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 97])
def test_every_count_of_rows(
    rows: int, past: int, functions: dict[torch.dtype, Functions], dtype: torch.dtype, int8: bool
) -> None:
    shape = Shape(((past, rows),), heads=3, kv_heads=1, head_dim=40, block_size=8)
    data = random_data(shape, dtype, rows)
    wanted = expected(shape, in_codes(data) if int8 else data)
    assert_near(attend(functions[dtype], shape, paged(shape, data, int8=int8)), wanted)


@pytest.mark.parametrize("head_dim", [1, 2, 3, 15, 31, 33, 64, 65, 96, 130])
@pytest.mark.parametrize(("heads", "kv_heads"), [(2, 2), (5, 1), (14, 2), (100, 1)])
def test_odd_heads(
    heads: int, kv_heads: int, head_dim: int, functions: dict[torch.dtype, Functions], dtype: torch.dtype, int8: bool
) -> None:
    shape = Shape(((7, 30),), heads, kv_heads, head_dim)
    data = random_data(shape, dtype, head_dim)
    wanted = expected(shape, in_codes(data) if int8 else data)
    assert_near(attend(functions[dtype], shape, paged(shape, data, int8=int8)), wanted)


@pytest.mark.parametrize("window", [0, 1, 2, 7, 8, 31, 63, 64, 65, 100, 129, 1 << 40])
@pytest.mark.parametrize("group", [1, 3, 8])
def test_a_row_sees_its_own_keys_and_no_other(
    window: int, group: int, functions: dict[torch.dtype, Functions], dtype: torch.dtype
) -> None:
    """Equal scores, and values that say which keys were seen: means of ones are exact before their last rounding.

    A key too few or too many changes one of these means by a fifth or more.
    """
    shape = Shape(((0, 130), (150, 130), (77, 1)), heads=group, kv_heads=1, head_dim=128, window=window)
    ones = torch.eye(128, dtype=dtype)
    contexts = [past + new for past, new in shape.sequences]
    data = Data(
        torch.zeros(shape.rows, group, 128, dtype=dtype),
        tuple(torch.randn(context, 1, 128).to(dtype) for context in contexts),
        tuple(ones[torch.arange(context) % 128].unsqueeze(1) for context in contexts),
    )
    attended = attend(functions[dtype], shape, paged(shape, data))
    for sequence, own in enumerate(sequences_of(shape, attended)):
        seen = visible(shape, sequence).double()
        means = seen / seen.sum(-1, keepdim=True) @ data.values[sequence].squeeze(1).double()
        rounding = 2.0**-8 if dtype == torch.bfloat16 else 1e-6
        torch.testing.assert_close(own.double(), means.unsqueeze(1).expand(-1, group, -1), rtol=rounding, atol=0)


ADVERSARIAL = {
    "scores of ten thousand": (3e3, 1.0),
    "scores that hardly differ": (1e-30, 1.0),
    "values of 1e30": (1.0, 1e30),
    "values of 1e-30": (1.0, 1e-30),
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_extreme_magnitudes(name: str, functions: dict[torch.dtype, Functions], dtype: torch.dtype, int8: bool) -> None:
    spread, size = ADVERSARIAL[name]
    shape = Shape(((40, 90), (0, 70)), heads=6, kv_heads=2, window=50)
    data = random_data(shape, dtype, 1, spread)
    data = replace(data, values=tuple(value * size for value in data.values))
    wanted = expected(shape, in_codes(data) if int8 else data)
    assert_near(attend(functions[dtype], shape, paged(shape, data, int8=int8)), wanted)


def test_the_largest_score_may_come_last_or_first(functions: dict[torch.dtype, Functions], dtype: torch.dtype) -> None:
    """Keys in order of their scores, rising and falling by 2,000 in all: what was summed is scaled down, or stays."""
    shape = Shape(((200, 100),), heads=2, kv_heads=1, head_dim=16, scale=1.0)
    ramp = torch.linspace(-1000, 1000, 300).to(dtype)
    for keys in (ramp, ramp.flip(0)):
        data = random_data(shape, dtype, 2)
        data.q[:] = 0
        data.q[:, :, 3] = 1.0
        data.keys[0][:, 0, 3] = keys
        assert_near(attend(functions[dtype], shape, paged(shape, data)), expected(shape, data))


def test_zeros_and_equal_values_stay_what_they_are(
    functions: dict[torch.dtype, Functions], dtype: torch.dtype, int8: bool
) -> None:
    shape = Shape(((30, 120), (0, 3)), heads=6, kv_heads=2)
    data = random_data(shape, dtype, 3)
    zeros = replace(data, values=tuple(torch.zeros_like(value) for value in data.values))
    attended = attend(functions[dtype], shape, paged(shape, zeros, int8=int8))
    assert (attended == 0).all()
    ones = replace(data, values=tuple(torch.ones_like(value) for value in data.values))
    attended = attend(functions[dtype], shape, paged(shape, ones, int8=int8))
    rounding = 2.0**-8 if dtype == torch.bfloat16 else 1e-6
    torch.testing.assert_close(attended, torch.ones_like(attended), rtol=0, atol=rounding)
    no_keys = replace(data, keys=tuple(torch.zeros_like(key) for key in data.keys))
    wanted = expected(shape, in_codes(no_keys) if int8 else no_keys)
    assert_near(attend(functions[dtype], shape, paged(shape, no_keys, int8=int8)), wanted)


def test_sums_over_many_tiles_do_not_drift(functions: dict[torch.dtype, Functions], dtype: torch.dtype) -> None:
    """Equal scores over 32,000 keys, ones in the first half: a factor a little off 1 for each tile would show."""
    shape = Shape(((31995, 5),), heads=3, kv_heads=1, head_dim=16)
    data = random_data(shape, dtype, 4)
    data.q[:] = 0
    data.values[0][:] = 0
    data.values[0][:16000] = 1
    attended = attend(functions[dtype], shape, paged(shape, data)).double()
    rounding = 2.0**-8 if dtype == torch.bfloat16 else 1e-6
    exact = (16000 / torch.arange(31996, 32001, dtype=torch.float64)).view(-1, 1, 1).expand_as(attended)
    torch.testing.assert_close(attended, exact, rtol=rounding, atol=0)


MIXED = Shape(((90, 1), (0, 130), (300, 1), (64, 40), (0, 1), (10, 2)), heads=9, kv_heads=3, head_dim=64)


@pytest.mark.parametrize("window", [0, 33])
def test_threads_blocks_and_batch_mates_change_no_bit(
    window: int, functions: dict[torch.dtype, Functions], dtype: torch.dtype, int8: bool
) -> None:
    shape = replace(MIXED, window=window)
    data = random_data(shape, dtype, 5)
    once = attend(functions[dtype], shape, paged(shape, data, int8=int8))
    for threads in (1, 2, 3):
        again = attend(functions[dtype], shape, paged(shape, data, int8=int8, seed=threads), threads)
        assert torch.equal(again, once)
    for sequence, own in enumerate(sequences_of(shape, once)):
        alone, lone_data = shape.alone(sequence), data.alone(shape, sequence)
        assert torch.equal(attend(functions[dtype], alone, paged(alone, lone_data, int8=int8), threads=2), own)


@pytest.mark.parametrize("broken", [0, 1, 3])
def test_a_batch_mate_of_nans_touches_no_other(
    broken: int, functions: dict[torch.dtype, Functions], dtype: torch.dtype, int8: bool
) -> None:
    data = random_data(MIXED, dtype, 6)
    clean = attend(functions[dtype], MIXED, paged(MIXED, data, int8=int8), threads=2)
    for tensor in (data.q[rows_of(MIXED, broken)], data.keys[broken], data.values[broken]):
        tensor[:] = float("nan")
    dirty = attend(functions[dtype], MIXED, paged(MIXED, data, int8=int8), threads=2)
    for sequence, (before, after) in enumerate(
        zip(sequences_of(MIXED, clean), sequences_of(MIXED, dirty), strict=True)
    ):
        if sequence == broken:
            assert after.isnan().all()
        else:
            assert torch.equal(after, before)


def test_a_nan_shows_in_the_rows_that_see_it_and_a_key_of_nans_in_no_earlier_one(
    functions: dict[torch.dtype, Functions], dtype: torch.dtype
) -> None:
    shape = Shape(((0, 60),), heads=3, kv_heads=1)
    data = random_data(shape, dtype, 7)
    clean = attend(functions[dtype], shape, paged(shape, data))
    data.keys[0][41] = float("nan")
    dirty = attend(functions[dtype], shape, paged(shape, data))
    assert torch.equal(dirty[:41], clean[:41])
    assert dirty[41:].isnan().all()


def test_blocks_before_the_window_are_not_read(
    functions: dict[torch.dtype, Functions], dtype: torch.dtype, int8: bool
) -> None:
    """They may have been given away: their entries in the table point nowhere."""
    shape = Shape(((200, 70),), heads=3, kv_heads=1, block_size=8, window=20)
    data = random_data(shape, dtype, 9)
    step = paged(shape, data, int8=int8)
    clean = attend(functions[dtype], shape, step)
    first_needed = (200 - 20 + 1) // 8
    step.block_tables[0, :first_needed] = 1 << 29
    assert torch.equal(attend(functions[dtype], shape, step), clean)


def test_queries_and_cache_are_left_as_they_are(
    functions: dict[torch.dtype, Functions], dtype: torch.dtype, int8: bool
) -> None:
    data = random_data(MIXED, dtype, 10)
    step, untouched = paged(MIXED, data, int8=int8), paged(MIXED, data, int8=int8)
    attend(functions[dtype], MIXED, step, threads=2)
    for name in Step.__dataclass_fields__:
        used, before = getattr(step, name), getattr(untouched, name)
        assert before is None or torch.equal(used.nan_to_num(), before.nan_to_num()), name
