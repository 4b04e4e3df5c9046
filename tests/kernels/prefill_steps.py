"""Steps of any shape over a shuffled paged cache, their attention in float64, and how far a kernel may be from it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from quantgate_kernels.cpu.library import Functions
from quantgate_kernels.reference.int8_rows import quantize_rows

UNIT_ROUNDOFF = {torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24}
# A weight's relative error: one that is rounded to bfloat16 by a kernel's 16-bit products, and that of exp itself.
WEIGHT_ERROR = {torch.bfloat16: 2.0**-8 + 1.1e-4, torch.float32: 2.0**-22}


@dataclass(frozen=True)
class Shape:
    """sequences: (tokens in the cache before this step, new tokens)."""

    sequences: tuple[tuple[int, int], ...]
    heads: int = 1
    kv_heads: int = 1
    head_dim: int = 64
    block_size: int = 16
    window: int = 0
    scale: float | None = None

    @property
    def rows(self) -> int:
        return sum(new for _, new in self.sequences)

    @property
    def softmax_scale(self) -> float:
        return self.head_dim**-0.5 if self.scale is None else self.scale

    def alone(self, sequence: int) -> Shape:
        return replace(self, sequences=(self.sequences[sequence],))


@dataclass(frozen=True)
class Data:
    """q [rows, heads, head_dim]; keys and values of each sequence [tokens, kv_heads, head_dim]; all in one dtype."""

    q: Tensor
    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]

    def alone(self, shape: Shape, sequence: int) -> Data:
        return Data(self.q[rows_of(shape, sequence)], (self.keys[sequence],), (self.values[sequence],))


@dataclass(frozen=True)
class Step:
    """What the kernel reads. Scales are there over a cache of codes."""

    q: Tensor
    keys: Tensor
    values: Tensor
    key_scales: Tensor | None
    value_scales: Tensor | None
    query_starts: Tensor
    context_lens: Tensor
    block_tables: Tensor


@dataclass(frozen=True)
class Expected:
    """attended float64 [rows, heads, head_dim], and the error that roundings explain in each of its numbers."""

    attended: Tensor
    tolerance: Tensor


def rows_of(shape: Shape, sequence: int) -> slice:
    start = sum(new for _, new in shape.sequences[:sequence])
    return slice(start, start + shape.sequences[sequence][1])


def random_data(shape: Shape, dtype: torch.dtype, seed: int, spread: float = 1.0) -> Data:
    """spread: of the queries. The larger it is, the fewer keys have weight."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*sizes: int) -> Tensor:
        return torch.randn(*sizes, generator=generator)

    contexts = [past + new for past, new in shape.sequences]
    rows = (shape.kv_heads, shape.head_dim)
    return Data(
        (draw(shape.rows, shape.heads, shape.head_dim) * spread).to(dtype),
        tuple(draw(context, *rows).to(dtype) for context in contexts),
        tuple(draw(context, *rows).to(dtype) for context in contexts),
    )


def in_codes(data: Data) -> Data:
    """The same step with keys and values as INT8 codes and scales stand for them, exact in float64."""

    def decoded(rows: Tensor) -> Tensor:
        codes, scales = quantize_rows(rows.float())
        return codes.double() * scales.double().unsqueeze(-1)

    return Data(data.q, tuple(map(decoded, data.keys)), tuple(map(decoded, data.values)))


def paged(shape: Shape, data: Data, *, int8: bool = False, seed: int = 0) -> Step:
    """Blocks in a shuffled order, with free ones among them; all that no sequence has holds NaN, as scales do."""
    size, needed = shape.block_size, [-(-(past + new) // shape.block_size) for past, new in shape.sequences]
    order = random.Random(seed).sample(range(sum(needed) + 3), sum(needed))
    tables = [[order.pop() for _ in range(count)] for count in needed]
    rows = (shape.kv_heads, shape.head_dim)
    places = (sum(needed) + 3, size)
    stored = [torch.full((*places, *rows), float("nan"), dtype=data.q.dtype) for _ in range(2)]
    scales: list[Tensor | None] = [None, None]
    if int8:
        stored = [torch.full((*places, *rows), 77, dtype=torch.int8) for _ in range(2)]
        scales = [torch.full((*places, shape.kv_heads), float("nan")) for _ in range(2)]
    for table, key, value in zip(tables, data.keys, data.values, strict=True):
        slots = [table[position // size] * size + position % size for position in range(key.shape[0])]
        for side, numbers in enumerate((key, value)):
            own_scales = scales[side]
            if own_scales is not None:
                numbers, own_scales.view(-1, shape.kv_heads)[slots] = quantize_rows(numbers.float())
            stored[side].view(-1, *rows)[slots] = numbers
    widest = max(needed)
    starts = itertools.accumulate((new for _, new in shape.sequences), initial=0)
    return Step(
        data.q.contiguous(),
        *stored,
        *scales,
        query_starts=torch.tensor(list(starts), dtype=torch.int32),
        context_lens=torch.tensor([past + new for past, new in shape.sequences], dtype=torch.int32),
        block_tables=torch.tensor([table + [0] * (widest - len(table)) for table in tables], dtype=torch.int32),
    )


def attend(functions: Functions, shape: Shape, step: Step, threads: int = 1) -> Tensor:
    """-> [rows, heads, head_dim] in the queries' dtype."""
    out = torch.full_like(step.q, float("nan"))
    scales = (None if scales is None else scales.data_ptr() for scales in (step.key_scales, step.value_scales))
    functions.attention(
        step.q.data_ptr(), step.keys.data_ptr(), step.values.data_ptr(), *scales, step.query_starts.data_ptr(),
        step.context_lens.data_ptr(), step.block_tables.data_ptr(), out.data_ptr(), len(shape.sequences), shape.heads,
        shape.kv_heads, shape.head_dim, shape.block_size, step.block_tables.shape[1], shape.window,
        shape.softmax_scale, threads,
    )  # fmt: skip
    return out


def visible(shape: Shape, sequence: int) -> Tensor:
    """bool [new rows, context]: which keys each row sees."""
    past, new = shape.sequences[sequence]
    rows, keys = torch.arange(past, past + new).unsqueeze(1), torch.arange(past + new)
    seen = keys <= rows
    return seen & (keys > rows - shape.window) if shape.window else seen


def expected(shape: Shape, data: Data) -> Expected:
    """Attention in float64, and the bound of its error to first order.

    A score is a float32 sum of head_dim products, rounded head_dim + 4 times in all; its error is a relative one of the
    weight. So is WEIGHT_ERROR. Both act on the weighted values and on the sum that these are divided by, which makes
    twice the error, times the weighted mean of the values' magnitudes. Sums over keys add a rounding for each key, and
    the result is rounded once to its dtype.
    """
    single = UNIT_ROUNDOFF[torch.float32]
    attended, tolerance = [], []
    for sequence, (key, value) in enumerate(zip(data.keys, data.values, strict=True)):
        seen = visible(shape, sequence)
        q = data.q[rows_of(shape, sequence)].double()
        keys, values = (side.double().repeat_interleave(shape.heads // shape.kv_heads, dim=1) for side in (key, value))
        scores = torch.einsum("rhd,thd->hrt", q, keys) * shape.softmax_scale
        weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
        magnitudes = torch.einsum("rhd,thd->hrt", q.abs(), keys.abs()) * abs(shape.softmax_scale)
        exponent_error = (shape.head_dim + 4) * single * magnitudes.masked_fill(~seen, 0.0).amax(-1)
        sums_error = 2 * single * seen.sum(-1)
        weight_error = 2 * (torch.expm1(2 * exponent_error) + WEIGHT_ERROR[data.q.dtype]) + sums_error
        result = torch.einsum("hrt,thd->rhd", weights, values)
        mean_magnitude = torch.einsum("hrt,thd->rhd", weights, values.abs())
        attended.append(result)
        tolerance.append(weight_error.T.unsqueeze(-1) * mean_magnitude + UNIT_ROUNDOFF[data.q.dtype] * result.abs())
    return Expected(torch.cat(attended), torch.cat(tolerance) * 1.02 + 1e-37)


def assert_near(actual: Tensor, wanted: Expected) -> None:
    excess = (actual.double() - wanted.attended).abs() / wanted.tolerance
    worst = float(excess.nan_to_num(nan=float("inf")).max())
    assert worst <= 1.0, f"an error is {worst:.3g} times what roundings explain"


def sequences_of(shape: Shape, whole: Tensor) -> Sequence[Tensor]:
    """A step's rows by sequence."""
    return [whole[rows_of(shape, sequence)] for sequence in range(len(shape.sequences))]
