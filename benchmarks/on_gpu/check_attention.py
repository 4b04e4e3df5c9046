"""Attention of decodes and prompts against float64, row by row, and the write of keys and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from benchmarks.on_gpu.checked import Check, Compared, near, same
from benchmarks.on_gpu.place import Place
from tests.gpu.float64_attention import attention_of_row, hadamard, rotated
from tests.gpu.paged_cases import Contexts, paged_step, queries, random_contexts
from torch import Tensor

from quantgate_kernels.gpu.attention_plan import prefill_tiles
from quantgate_kernels.gpu.decode_attention import decode_attention
from quantgate_kernels.gpu.launch_table import decode_launch, prefill_launch
from quantgate_kernels.gpu.prefill_attention import prefill_attention
from quantgate_kernels.gpu.rotate_and_write import rotate_and_write
from quantgate_kernels.gpu.split_sizes import split_size
from quantgate_kernels.types import KVLayer, dtype_name

BLOCK = 16
KV_HEADS = 2
ROUNDING = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
"""Of numbers around 1: thrice the rounding to the dtype, of shares, results and of what codes stand for."""

LLAMA_HEADS = (4, 128)
HEADS = (LLAMA_HEADS, (8, 64), (3, 80), (1, 96))
"""(query heads that share a key head, head_dim)"""


def attention_checks(decodes: Sequence[int], prompts: Sequence[tuple[int, int]]) -> Iterator[Check]:
    """decodes: lengths of contexts. prompts: (length of the context, how many of its last tokens are new)."""
    alone = [(length, 1) for length in decodes]
    for dtype in ROUNDING:
        for stored in (dtype, torch.int8):
            # Each more is code of its own to compile: all heads in one dtype, and both dtypes for one kind of heads.
            for heads in HEADS if dtype == torch.float16 else (LLAMA_HEADS,):
                for window in (None, 100) if heads == LLAMA_HEADS else (None,):
                    yield _attention_check("decode attention", alone, dtype, stored, heads, window)
                    yield _attention_check("prefill attention", prompts, dtype, stored, heads, window)


def _attention_check(
    kernel: str,
    sequences: Sequence[tuple[int, int]],
    dtype: torch.dtype,
    stored: torch.dtype,
    heads: tuple[int, int],
    window: int | None,
) -> Check:
    group, head_dim = heads
    lengths, new = [length for length, _ in sequences], [rows for _, rows in sequences]
    contexts = random_contexts(lengths, KV_HEADS, head_dim, stored)
    q = queries(sum(new), KV_HEADS * group, head_dim, dtype)
    case = (
        f"{dtype_name(dtype)}, {dtype_name(stored)} KV, {group} heads a key head, head_dim {head_dim}, window {window}"
    )
    run = _decode if kernel.startswith("decode") else _prefill
    return Check(
        kernel, case, partial(run, contexts, new, q, window), partial(_compare_attention, contexts, new, q, window)
    )


def _decode(contexts: Contexts, new: Sequence[int], q: Tensor, window: int | None, place: Place) -> list[Tensor]:
    cache, batch = paged_step(contexts, new, BLOCK)
    longest, sequences = max(batch.context_lens_host), len(new)
    launch = decode_launch(place.architecture, cache.keys.element_size(), q.shape[-1])
    split = split_size(sequences, KV_HEADS, longest, place.processors, launch.num_warps)
    q = q.to(place.torch_device)
    attended = torch.full_like(q, float("nan"))
    chosen = torch.arange(sequences, dtype=torch.int32, device=place.torch_device)
    decode_attention(
        q, place.put(cache), place.put(batch), chosen, longest, split, q.shape[-1] ** -0.5, window, attended,
        place.architecture,
    )  # fmt: skip
    return [attended]


def _prefill(contexts: Contexts, new: Sequence[int], q: Tensor, window: int | None, place: Place) -> list[Tensor]:
    cache, batch = paged_step(contexts, new, BLOCK)
    launch = prefill_launch(place.architecture, cache.keys.element_size(), q.shape[-1])
    work = prefill_tiles(batch, launch.rows // (q.shape[1] // KV_HEADS), range(len(new)))
    tiles = torch.tensor(work, dtype=torch.int32).to(place.torch_device)
    q = q.to(place.torch_device)
    attended = torch.full_like(q, float("nan"))
    prefill_attention(
        q, place.put(cache), place.put(batch), tiles, q.shape[-1] ** -0.5, window, attended, place.architecture
    )
    return [attended]


def _compare_attention(
    contexts: Contexts, new: Sequence[int], q: Tensor, window: int | None, results: Sequence[Tensor]
) -> list[Compared]:
    exact, rows = [], iter(q)
    for keys, values, count in zip(contexts.keys, contexts.values, new, strict=True):
        for end in range(keys.shape[0] - count + 1, keys.shape[0] + 1):
            seen = slice(0 if window is None else max(0, end - window), end)
            exact.append(attention_of_row(next(rows), keys[seen], values[seen], q.shape[-1] ** -0.5))
    rounding = ROUNDING[q.dtype]
    return [near("attended", results[0], torch.stack(exact), rounding, rounding)]


def rotation_checks(rows: Sequence[int]) -> Iterator[Check]:
    for dtype in ROUNDING:
        for stored in (dtype, torch.int8):
            for head_dim in (64, 80, 128):
                for count in rows:
                    case = f"{dtype_name(dtype)}, {dtype_name(stored)} KV, head_dim {head_dim}, {count} rows"
                    operands = _rotation_operands(count, head_dim, dtype)
                    yield Check(
                        "rope and KV write",
                        case,
                        partial(_rotate, *operands, stored),
                        partial(_compare_rotation, *operands),
                    )


QUERY_HEADS = 3


def _rotation_operands(rows: int, head_dim: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """qkv with an outlier in each head, cos and sin of random positions, slots in no order."""
    generator = torch.Generator().manual_seed(rows)
    qkv = torch.randn(rows, QUERY_HEADS + 2 * KV_HEADS, head_dim, generator=generator)
    qkv[..., 3] *= 20
    angles = (torch.rand(rows, head_dim // 2, generator=generator) * 6).repeat(1, 2)
    return qkv.view(rows, -1).to(dtype), angles.cos(), angles.sin(), torch.randperm(rows, generator=generator)


def _rotate(qkv: Tensor, cos: Tensor, sin: Tensor, slots: Tensor, stored: torch.dtype, place: Place) -> list[Tensor]:
    blocks, head_dim = -(-len(slots) // BLOCK), cos.shape[1]
    shape = (blocks, BLOCK, KV_HEADS)
    pair = [torch.zeros(*shape, head_dim, dtype=stored) for _ in range(2)]
    scales = [torch.zeros(shape) for _ in range(2 if stored == torch.int8 else 0)]
    cache = place.put(KVLayer(*pair, *scales))
    there = [part.to(place.torch_device) for part in (qkv, cos, sin, slots)]
    rotated_queries = rotate_and_write(*there[:3], QUERY_HEADS, KV_HEADS, cache, there[3])
    written = [tensor.view(-1, *tensor.shape[2:]).index_select(0, there[3]) for tensor in cache.tensors()]
    return [rotated_queries, *written]


def _compare_rotation(
    qkv: Tensor, cos: Tensor, sin: Tensor, _slots: Tensor, results: Sequence[Tensor]
) -> list[Compared]:
    heads = qkv.view(len(qkv), -1, cos.shape[1])
    turned = rotated(heads[:, : QUERY_HEADS + KV_HEADS], cos, sin)
    plain = heads[:, QUERY_HEADS + KV_HEADS :].double()
    rounding = torch.finfo(qkv.dtype).eps
    if len(results) == 3:
        exact = (turned[:, :QUERY_HEADS], turned[:, QUERY_HEADS:])
        pairs = zip(("queries", "keys"), results, exact, strict=False)
        compared = [near(name, found, right, rounding * 4, rounding) for name, found, right in pairs]
        return [*compared, same("values", results[2], plain)]
    turned = turned @ hadamard(cos.shape[1])
    compared = [near("queries", results[0], turned[:, :QUERY_HEADS], rounding * 8, rounding)]
    for name, codes, scales, exact_rows in (
        ("keys", results[1], results[3], turned[:, QUERY_HEADS:]),
        ("values", results[2], results[4], plain),
    ):
        steps = exact_rows.abs().amax(-1) / 127
        compared.append(near(f"scales of {name}", scales, steps, 0.0, 1e-6))
        half = (steps * 0.5001)[..., None].expand_as(exact_rows)
        compared.append(Compared(f"codes of {name}", codes.double() * steps[..., None], exact_rows, half))
    return compared
