"""The deterministic sets: a row's bits are those that it has alone, in any company, at any place, on any threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import get_args

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.test_stored_weights import int4_weight, int8_weight, random_normal
from torch import Tensor

from quantgate_kernels import registry
from quantgate_kernels.cpu import fixed_order_products
from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.kernel_set_names import AUTO, KernelSetName
from quantgate_kernels.reference import deterministic, lone_rows
from quantgate_kernels.reference.linear import dequantize
from quantgate_kernels.registry import DETERMINISTIC_SETS, KERNEL_SETS, make_kernel_set
from quantgate_kernels.types import AttentionBatch, DenseWeight, KVLayer, LinearWeight
from quantgate_kernels.unavailable import KernelSetUnavailableError

DTYPES = (torch.float32, torch.bfloat16)
ROWS = 11
GROUPS = ([0], [10], [1, 0], [2, 3, 4], [9, 7, 5, 3, 1], [3] * 6, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
"""Rows that are computed together: alone, in pairs, at other places, in whole and broken tiles."""


@pytest.fixture(params=list(DETERMINISTIC_SETS))
def kernels(request: pytest.FixtureRequest) -> KernelSet:
    kernel_set_or_skip(request.param)
    return make_kernel_set(request.param, deterministic=True)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def assert_rows_are_their_own(compute: Callable[[list[int]], Tensor]) -> None:
    """`compute` gives the results of these rows, which it computes together."""
    torch.set_num_threads(1)
    expected = compute(list(range(ROWS)))
    for group in GROUPS:
        assert torch.equal(compute(group), expected[group]), f"rows {group}"
    for threads in (2, 3):
        torch.set_num_threads(threads)
        assert torch.equal(compute(GROUPS[-1]), expected[GROUPS[-1]]), f"{threads} threads"


FORMS: dict[str, Callable[[int, int, torch.dtype], LinearWeight]] = {
    "dense": lambda outputs, inputs, dtype: DenseWeight(random_normal(outputs, inputs).to(dtype)),
    "int8": int8_weight,
    "int4-g32": lambda outputs, inputs, dtype: int4_weight(outputs, inputs, 32, dtype),
    "int4-g64": lambda outputs, inputs, dtype: int4_weight(outputs, inputs, 64, dtype),
}
SHAPES = [(96, 64), (192, 576), (50, 192), (1, 64)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
@pytest.mark.parametrize("form", FORMS)
def test_products(kernels: KernelSet, form: str, outputs: int, inputs: int, dtype: torch.dtype) -> None:
    given = FORMS[form](outputs, inputs, dtype)
    weight, bias = kernels.stored_form(given), random_normal(outputs, seed=8).to(dtype)
    x = random_normal(ROWS, inputs, seed=5).to(dtype)
    assert_rows_are_their_own(lambda group: kernels.linear(x[group], weight, bias))
    exact = x.double() @ dequantize(given).double().t()
    magnitude = x.double().abs() @ dequantize(given).double().abs().t()
    tolerance = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-18
    product = kernels.linear(x, weight)
    assert product.dtype == dtype
    assert ((product.double() - exact).abs() <= tolerance * magnitude).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inputs", [1, 7, 33, 100])
def test_products_of_widths_that_fill_no_vector(kernels: KernelSet, inputs: int, dtype: torch.dtype) -> None:
    weight = DenseWeight(random_normal(37, inputs).to(dtype))
    x = random_normal(ROWS, inputs, seed=5).to(dtype)
    assert_rows_are_their_own(lambda group: kernels.linear(x[group], weight))
    exact = x.double() @ weight.weight.double().t()
    magnitude = x.double().abs() @ weight.weight.double().abs().t()
    tolerance = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-18
    assert ((kernels.linear(x, weight).double() - exact).abs() <= tolerance * magnitude).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_do_not_depend_on_whether_probabilities_are_wanted(kernels: KernelSet, dtype: torch.dtype) -> None:
    head = DenseWeight(random_normal(4133, 64).to(dtype))
    x = random_normal(ROWS, 64, seed=5).to(dtype)
    assert_rows_are_their_own(lambda group: kernels.head(x[group], head))
    logits = kernels.head(x, head)
    assert torch.equal(kernels.head(x, head, exact=True), logits)
    assert logits.dtype == torch.float32
    magnitude = x.double().abs() @ head.weight.double().abs().t()
    assert ((logits.double() - x.double() @ head.weight.double().t()).abs() <= 2.0**-18 * magnitude).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 50, 96, 577])
def test_pointwise_operations(kernels: KernelSet, width: int, dtype: torch.dtype) -> None:
    """Odd widths: rows begin at any address, and the end of a batch is not the end of a row."""
    x, residual = (random_normal(ROWS, width, seed=seed).to(dtype) for seed in (2, 3))
    gate_up = random_normal(ROWS, 2 * width, seed=4).to(dtype) * 6
    weight = random_normal(width).to(dtype)
    for side in range(2):
        assert_rows_are_their_own(lambda group, side=side: kernels.rms_norm(x[group], weight, 1e-5)[side])
        assert_rows_are_their_own(
            lambda group, side=side: kernels.rms_norm(x[group], weight, 1e-5, residual[group])[side]
        )
    assert_rows_are_their_own(lambda group: kernels.silu_and_mul(gate_up[group]))


def empty_cache(dtype: torch.dtype, kv_heads: int, head_dim: int, int8: bool) -> KVLayer:
    shape = (40, 4, kv_heads, head_dim)
    if not int8:
        return KVLayer(*(torch.zeros(shape, dtype=dtype) for _ in range(2)))
    codes = (torch.zeros(shape, dtype=torch.int8) for _ in range(2))
    return KVLayer(*codes, *(torch.zeros(shape[:3]) for _ in range(2)))


def drawn_cache(dtype: torch.dtype, kv_heads: int, head_dim: int, int8: bool) -> KVLayer:
    """Normal numbers, or codes and scales that stand for about such."""
    cache = empty_cache(dtype, kv_heads, head_dim, int8)
    for seed, tensor in enumerate(cache.tensors()):
        drawn = random_normal(*tensor.shape, seed=seed)
        if int8:
            drawn = drawn.mul(40).clamp(-127, 127) if tensor.dtype == torch.int8 else drawn / 40
        tensor.copy_(drawn)
    return cache


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("int8", [False, True], ids=["16 bits", "int8"])
@pytest.mark.parametrize("head_dim", [10, 64])
def test_rope_and_the_write_of_keys_and_values(
    kernels: KernelSet, head_dim: int, int8: bool, dtype: torch.dtype
) -> None:
    heads, kv_heads = 3, 1
    qkv = random_normal(ROWS, (heads + 2 * kv_heads) * head_dim).to(dtype)
    angles = random_normal(ROWS, head_dim // 2, seed=6).repeat(1, 2)
    slots = torch.randperm(160, generator=torch.Generator().manual_seed(1))[:ROWS]

    def compute(group: list[int]) -> Tensor:
        """Queries beside what then stands in the cache, all in float64."""
        cache = empty_cache(dtype, kv_heads, head_dim, int8)
        turn = angles[group]
        queries = kernels.rope_and_write_kv(qkv[group], turn.cos(), turn.sin(), heads, kv_heads, cache, slots[group])
        written = [tensor.view(160, -1)[slots[group]] for tensor in cache.tensors()]
        return torch.cat([part.double() for part in (queries.flatten(1), *written)], dim=-1)

    assert_rows_are_their_own(compute)


def one_sequence(start: int, stop: int, table: list[int]) -> AttentionBatch:
    """The tokens from start to stop of a sequence, in blocks of four."""
    positions = torch.arange(start, stop)
    return AttentionBatch(
        query_starts=torch.tensor([0, stop - start], dtype=torch.int32),
        context_lens=torch.tensor([stop], dtype=torch.int32),
        block_tables=torch.tensor([table], dtype=torch.int32),
        slots=torch.tensor(table)[positions // 4] * 4 + positions % 4,
        positions=positions,
        query_starts_host=(0, stop - start),
        context_lens_host=(stop,),
        block_size=4,
    )


def side_by_side(parts: list[AttentionBatch]) -> AttentionBatch:
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + part.num_rows)
    return AttentionBatch(
        query_starts=torch.tensor(starts, dtype=torch.int32),
        context_lens=torch.cat([part.context_lens for part in parts]),
        block_tables=torch.cat([part.block_tables for part in parts]),
        slots=torch.cat([part.slots for part in parts]),
        positions=torch.cat([part.positions for part in parts]),
        query_starts_host=tuple(starts),
        context_lens_host=tuple(part.context_lens_host[0] for part in parts),
        block_size=4,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("int8", [False, True], ids=["16 bits", "int8"])
@pytest.mark.parametrize("window", [None, 5, 33])
@pytest.mark.parametrize("head_dim", [10, 64])
def test_attention(kernels: KernelSet, head_dim: int, window: int | None, int8: bool, dtype: torch.dtype) -> None:
    """A sequence of 70 tokens: as one prefill, in chunks, token by token, and beside another sequence."""
    heads, kv_heads, length = 4, 2, 70
    table, other = list(range(18)), list(range(20, 38))
    cache = drawn_cache(dtype, kv_heads, head_dim, int8)
    q = random_normal(length, heads, head_dim, seed=9).to(dtype)

    def in_chunks(chunk: int) -> Tensor:
        ends = [(start, min(start + chunk, length)) for start in range(0, length, chunk)]
        return torch.cat([kernels.attention(q[a:b], cache, one_sequence(a, b, table), 0.3, window) for a, b in ends])

    torch.set_num_threads(1)
    whole = in_chunks(length)
    for chunk, threads in ((1, 1), (7, 1), (32, 1), (length, 2), (length, 3)):
        torch.set_num_threads(threads)
        assert torch.equal(in_chunks(chunk), whole), f"chunks of {chunk} on {threads} threads"
    torch.set_num_threads(1)
    mixed = side_by_side([one_sequence(0, 50, other), one_sequence(40, length, table), one_sequence(8, 9, other)])
    together = kernels.attention(torch.cat((q[:50], q[40:], q[:1])), cache, mixed, 0.3, window)
    assert torch.equal(together[50:80], whole[40:])


@pytest.mark.parametrize("int8", [False, True], ids=["16 bits", "int8"])
@pytest.mark.parametrize("window", [None, 5])
def test_attention_is_that_of_the_reference(kernels: KernelSet, window: int | None, int8: bool) -> None:
    cache = drawn_cache(torch.float32, 2, 16, int8)
    q = random_normal(30, 4, 16, seed=9)
    batch = side_by_side([one_sequence(3, 32, list(range(8))), one_sequence(20, 21, list(range(10, 18)))])
    expected = make_kernel_set("reference").attention(q, cache, batch, 0.3, window)
    torch.testing.assert_close(kernels.attention(q, cache, batch, 0.3, window), expected, rtol=1e-5, atol=1e-5)


def test_layers_of_one_step_are_expanded_once_and_a_new_step_again(kernels: KernelSet) -> None:
    """A stale plan would read the last step's context."""
    cache = drawn_cache(torch.float32, 1, 8, int8=False)
    q = random_normal(3, 2, 8)
    for table in ([1, 2], [5, 6]):
        batch = one_sequence(4, 7, table)
        for window in (None, 3, None):
            expected = make_kernel_set("reference").attention(q, cache, batch, 0.3, window)
            torch.testing.assert_close(kernels.attention(q, cache, batch, 0.3, window), expected)


def test_every_set_has_a_variant_with_a_name_of_its_own() -> None:
    names: tuple[KernelSetName, ...] = get_args(KernelSetName)
    assert set(DETERMINISTIC_SETS) == {name for name in names if name != AUTO}
    for name in DETERMINISTIC_SETS:
        kernel_set_or_skip(name)
        assert make_kernel_set(name, deterministic=True).name == f"{name}-deterministic"
        assert make_kernel_set(name).name == name


def test_a_set_without_a_variant_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KERNEL_SETS, "fast", KERNEL_SETS["reference"])
    monkeypatch.setitem(registry.FASTER_SETS, "cpu", ("fast",))
    assert make_kernel_set("fast").name == "reference"
    with pytest.raises(KernelSetUnavailableError, match=r"`fast` has no deterministic variant; choose one .*reference"):
        make_kernel_set("fast", deterministic=True)


def test_paths_tell_the_fixed_order() -> None:
    kernel_set_or_skip("cpu")
    kernels = make_kernel_set("cpu", deterministic=True)
    x = torch.ones(3, 64)
    for form, make in FORMS.items():
        kernels.linear(x, kernels.stored_form(make(96, 64, torch.float32)))
        label = "float32" if form == "dense" else form
        assert kernels.paths[f"linear.{label}"] == fixed_order_products.PATH
    kernels.head(x, DenseWeight(torch.ones(9, 64)))
    assert kernels.paths["head"] == fixed_order_products.PATH


def test_operands_that_the_c_code_does_not_read_take_the_references_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """16-bit storage under float32 arithmetic, as on CPUs that multiply no bfloat16."""
    kernel_set_or_skip("cpu")
    kernels = make_kernel_set("cpu", deterministic=True)
    asked: list[int] = []
    monkeypatch.setattr(deterministic, "rows_of", lambda x: asked.append(x.shape[0]) or lone_rows.rows_of(x))
    weight = DenseWeight(random_normal(9, 8).half())
    x = random_normal(ROWS, 8)
    assert_rows_are_their_own(lambda group: kernels.linear(x[group], weight))
    assert_rows_are_their_own(lambda group: kernels.head(x[group], weight))
    assert asked
    torch.testing.assert_close(kernels.linear(x, weight), x @ weight.weight.float().t())
