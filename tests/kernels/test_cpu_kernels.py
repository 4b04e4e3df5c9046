"""The C++ kernels against float64 formulas, on sizes that fill no vector register and inputs that provoke rounding."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from torch import Tensor

from quantgate_kernels.cpu.kernels import CpuKernels
from quantgate_kernels.types import AttentionBatch, KVLayer

# Half a unit in the last place of the result, and for float32 what its sums may lose.
RELATIVE_ERROR = {torch.bfloat16: 2.0**-8, torch.float32: 4e-6}
DTYPES = list(RELATIVE_ERROR)
WIDTHS = (1, 7, 64, 100, 576, 1023)
ROWS = (1, 3, 300)


@pytest.fixture
def cpu() -> CpuKernels:
    kernels = kernel_set_or_skip("cpu")
    assert isinstance(kernels, CpuKernels)
    return kernels


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def draw(*shape: int, dtype: torch.dtype, spread: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return (torch.randn(*shape, generator=generator) * spread).to(dtype)


def assert_near(actual: Tensor, expected: Tensor) -> None:
    """To the rounding of the result's type, and to a hundred-thousandth of the largest where values cancel."""
    tolerance = RELATIVE_ERROR[actual.dtype]
    floor = 1e-5 * float(expected.abs().max())
    torch.testing.assert_close(actual.double(), expected, rtol=tolerance, atol=floor)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e6])
def test_rms_norm(cpu: CpuKernels, threads: int, width: int, rows: int, dtype: torch.dtype, spread: float) -> None:
    x, residual = draw(rows, width, dtype=dtype, spread=spread), draw(rows, width + 1, dtype=dtype)[:, :-1].contiguous()
    weight = draw(width, dtype=dtype)
    normalised, total = cpu.rms_norm(x, weight, 1e-5, residual)
    assert torch.equal(total, x + residual)
    wide = total.double()
    expected = wide / (wide.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight.double()
    assert_near(normalised, expected)
    alone, same = cpu.rms_norm(total, weight, 1e-5)
    assert same is total
    assert torch.equal(alone, normalised)
    assert cpu.paths == {"rms_norm": "cpp"}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("width", WIDTHS)
def test_silu_and_mul(cpu: CpuKernels, threads: int, width: int, rows: int, dtype: torch.dtype) -> None:
    gate_up = draw(rows, 2 * width, dtype=dtype, spread=6.0)
    gate, up = gate_up.double().chunk(2, dim=-1)
    assert_near(cpu.silu_and_mul(gate_up), gate / (1 + (-gate).exp()) * up)


@pytest.mark.parametrize("gate", [-1e30, -200.0, -89.0, -88.0, -1e-30, 0.0, 1e-30, 88.0, 200.0, 1e30])
def test_silu_of_extreme_gates(cpu: CpuKernels, gate: float) -> None:
    x = torch.tensor([[gate] * 17 + [1.0] * 17])
    expected = gate / (1 + torch.tensor(-gate, dtype=torch.float64).exp())
    torch.testing.assert_close(cpu.silu_and_mul(x).double(), expected.expand(1, 17), rtol=1e-6, atol=1e-6)


def test_a_nan_stays_one_in_every_pointwise_kernel(cpu: CpuKernels) -> None:
    for dtype in DTYPES:
        x = torch.full((2, 34), float("nan"), dtype=dtype)
        x[0] = 1.0
        weight = torch.ones(34, dtype=dtype)
        for result in (cpu.silu_and_mul(x), cpu.rms_norm(x, weight, 1e-5)[0], cpu.rms_norm(x, weight, 1e-5, x)[1]):
            assert result[0].isfinite().all()
            assert result[1].isnan().all()


def test_bfloat16_rounds_to_the_nearest_and_ties_to_even(cpu: CpuKernels) -> None:
    """All pairs of 256 significands: sums that lie between two bfloat16 numbers, half of them exactly between."""
    significands = torch.arange(256).add(256).bfloat16()
    x = significands.repeat_interleave(256).view(256, 256).contiguous()
    residual = (significands / 256).repeat(256).view(256, 256).contiguous()
    _, total = cpu.rms_norm(x, torch.ones(256).bfloat16(), 1e-5, residual)
    assert torch.equal(total, (x.double() + residual.double()).bfloat16())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("head_dim", [2, 6, 64, 80, 128])
@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (9, 3), (8, 1)])
@pytest.mark.parametrize("rows", ROWS)
def test_rope_and_write_kv(
    cpu: CpuKernels, threads: int, rows: int, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype
) -> None:
    qkv = draw(rows, (heads + 2 * kv_heads) * head_dim, dtype=dtype)
    angles = draw(rows, head_dim // 2, dtype=torch.float32, spread=3.0).repeat(1, 2)
    slots = torch.randperm(320, generator=torch.Generator().manual_seed(rows))[:rows]
    cache = KVLayer(*(torch.full((80, 4, kv_heads, head_dim), 77.0, dtype=dtype) for _ in range(2)))
    queries = cpu.rope_and_write_kv(qkv, angles.cos(), angles.sin(), heads, kv_heads, cache, slots)

    parts = qkv.double().view(rows, heads + 2 * kv_heads, head_dim)
    first, second = parts[:, : heads + kv_heads].chunk(2, dim=-1)
    cos, sin = (table.double()[:, None, : head_dim // 2] for table in (angles.cos(), angles.sin()))
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    keys, values = cache.keys.view(-1, kv_heads, head_dim), cache.values.view(-1, kv_heads, head_dim)
    assert_near(queries, turned[:, :heads])
    assert_near(keys[slots], turned[:, heads:])
    assert torch.equal(values[slots].double(), parts[:, heads + kv_heads :])
    others = torch.ones(320, dtype=torch.bool).index_fill_(0, slots, value=False)
    assert (keys[others] == 77.0).all()
    assert (values[others] == 77.0).all()


def decode_batch(contexts: tuple[int, ...], block_size: int, order: Callable[[int], list[int]]) -> AttentionBatch:
    """One new token each; the sequences' blocks are taken in `order`(number of blocks)."""
    needed = [-(-context // block_size) for context in contexts]
    free = iter(order(sum(needed)))
    tables = [[next(free) for _ in range(blocks)] for blocks in needed]
    widest, count = max(needed), len(contexts)
    lasts = [context - 1 for context in contexts]
    slots = [
        table[last // block_size] * block_size + last % block_size for table, last in zip(tables, lasts, strict=True)
    ]
    return AttentionBatch(
        query_starts=torch.arange(count + 1, dtype=torch.int32),
        context_lens=torch.tensor(contexts, dtype=torch.int32),
        block_tables=torch.tensor([table + [0] * (widest - len(table)) for table in tables], dtype=torch.int32),
        slots=torch.tensor(slots),
        positions=torch.tensor(lasts),
        query_starts_host=tuple(range(count + 1)),
        context_lens_host=contexts,
        block_size=block_size,
    )


def context_slots(batch: AttentionBatch, sequence: int) -> Tensor:
    positions = torch.arange(batch.context_lens_host[sequence])
    return batch.block_tables[sequence].long()[positions // batch.block_size] * batch.block_size + (
        positions % batch.block_size
    )


def plain_decode(q: Tensor, cache: KVLayer, batch: AttentionBatch, scale: float) -> Tensor:
    heads, (kv_heads, head_dim) = q.shape[1], cache.keys.shape[2:]
    rows = []
    for sequence in range(batch.num_sequences):
        slots = context_slots(batch, sequence)
        keys, values = (
            side.view(-1, kv_heads, head_dim)[slots].double().repeat_interleave(heads // kv_heads, dim=1)
            for side in (cache.keys, cache.values)
        )
        weights = (torch.einsum("hd,thd->ht", q[sequence].double(), keys) * scale).softmax(-1)
        rows.append(torch.einsum("ht,thd->hd", weights, values).flatten())
    return torch.stack(rows)


CONTEXTS = (1, 2, 31, 32, 33, 97, 200)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spread", [1.0, 30.0], ids=["even weights", "one token takes all"])
@pytest.mark.parametrize("block_size", [1, 5, 16])
@pytest.mark.parametrize("head_dim", [1, 24, 64, 80, 96, 128])
@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (9, 3), (8, 2), (8, 1)])
def test_decode_attention(
    cpu: CpuKernels, heads: int, kv_heads: int, head_dim: int, block_size: int, spread: float, dtype: torch.dtype
) -> None:
    batch = decode_batch(CONTEXTS, block_size, lambda blocks: list(range(blocks)))
    blocks = int(batch.block_tables.max()) + 1
    cache = KVLayer(
        draw(blocks, block_size, kv_heads, head_dim, dtype=dtype, spread=spread),
        draw(blocks, block_size, kv_heads, head_dim + 1, dtype=dtype)[..., 1:].contiguous(),
    )
    q = draw(len(CONTEXTS), heads, head_dim, dtype=dtype)
    scale = head_dim**-0.5
    attended = cpu.attention(q, cache, batch, scale)
    assert_near(attended, plain_decode(q, cache, batch, scale))
    assert cpu.paths == {"attention": "cpp"}


def test_layout_batch_mates_and_threads_change_no_bit(cpu: CpuKernels) -> None:
    q = draw(len(CONTEXTS), 9, 64, dtype=torch.bfloat16)
    keys, values = (draw(side + 200, 3, 64, dtype=torch.bfloat16) for side in range(2))
    orders: dict[str, Callable[[int], list[int]]] = {
        "in order": lambda blocks: list(range(1, blocks + 1)),
        "shuffled": lambda blocks: (torch.randperm(blocks, generator=torch.Generator().manual_seed(4)) + 1).tolist(),
    }
    results = {}
    for name, order in orders.items():
        for garbage in (0.0, float("nan")):
            batch = decode_batch(CONTEXTS, 16, order)
            cache = KVLayer(*(torch.full((40, 16, 3, 64), garbage, dtype=torch.bfloat16) for _ in range(2)))
            for sequence, context in enumerate(CONTEXTS):
                cache.keys.view(-1, 3, 64)[context_slots(batch, sequence)] = keys[:context]
                cache.values.view(-1, 3, 64)[context_slots(batch, sequence)] = values[:context]
            results[name, garbage] = cpu.attention(q, cache, batch, 0.125)
            alone = [one_alone(batch, index) for index in range(len(CONTEXTS))]
            each = [cpu.attention(q[index : index + 1], cache, single, 0.125) for index, single in enumerate(alone)]
            assert torch.equal(torch.cat(each), results[name, garbage])
            before = torch.get_num_threads()
            torch.set_num_threads(3)
            assert torch.equal(cpu.attention(q, cache, batch, 0.125), results[name, garbage])
            torch.set_num_threads(before)
    first, *others = results.values()
    assert first.isfinite().all()
    assert all(torch.equal(other, first) for other in others)


def one_alone(batch: AttentionBatch, index: int) -> AttentionBatch:
    return AttentionBatch(
        query_starts=torch.tensor([0, 1], dtype=torch.int32),
        context_lens=batch.context_lens[index : index + 1],
        block_tables=batch.block_tables[index : index + 1],
        slots=batch.slots[index : index + 1],
        positions=batch.positions[index : index + 1],
        query_starts_host=(0, 1),
        context_lens_host=batch.context_lens_host[index : index + 1],
        block_size=batch.block_size,
    )


def test_operands_that_the_c_code_does_not_read_take_the_references_path(cpu: CpuKernels) -> None:
    half = torch.ones(2, 8, dtype=torch.float16)
    assert cpu.silu_and_mul(half).dtype == torch.float16
    assert cpu.paths == {"silu_and_mul": "torch"}
    strided = torch.arange(32.0).view(2, 16)[:, ::2]
    gated = cpu.silu_and_mul(strided)
    assert cpu.paths == {"silu_and_mul": "torch"}
    torch.testing.assert_close(cpu.silu_and_mul(strided.contiguous()), gated)
    assert cpu.paths == {"silu_and_mul": "cpp"}
