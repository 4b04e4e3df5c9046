"""The bundled model's shapes, and operands that lie where a step of the whole model finds them: in no cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Protocol, TypeVar

import torch
from torch import Tensor

from quantgate_kernels.device_limits import READ_BYTES
from quantgate_kernels.int4_packing import pack_groups
from quantgate_kernels.types import (
    AttentionBatch,
    DenseWeight,
    Int4GroupWeight,
    Int8ChannelWeight,
    Int8DynamicWeight,
    KVLayer,
)


class Fields(Protocol):
    """A dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Operand = TypeVar("Operand", bound=Fields)
PlainWeight = DenseWeight | Int8ChannelWeight | Int8DynamicWeight | Int4GroupWeight

HIDDEN, FFN, VOCABULARY = 576, 1536, 49_152
HEADS, KV_HEADS, HEAD_DIM = 9, 3, 64
BLOCK_SIZE = 16

LINEAR_LAYERS = {
    "query_key_value": ((HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN),
    "attention_output": (HIDDEN, HEADS * HEAD_DIM),
    "gate_up": (2 * FFN, HIDDEN),
    "down": (HIDDEN, FFN),
}
"""(outputs, inputs)"""

ROWS = (1, 4, 16, 64, 512)
"""One stream, small batches, and chunks of prompts."""

_GROUP_SIZE = 64


def cold(operand: Operand, size_bytes: int) -> list[Operand]:
    """So many copies of a weight or a cache that going through them in turn finds none in the processor's caches."""
    copies = -(-READ_BYTES // size_bytes) - 1
    return [operand, *(_copy(operand) for _ in range(copies))]


def _copy(operand: Operand) -> Operand:
    tensors = {field.name: getattr(operand, field.name) for field in fields(operand)}
    return replace(operand, **{name: part.clone() for name, part in tensors.items() if isinstance(part, Tensor)})


def numbers(*shape: int, seed: int = 1) -> Tensor:
    """bfloat16, normally distributed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def _codes(low: int, high: int, *shape: int) -> Tensor:
    return torch.randint(low, high + 1, shape, generator=torch.Generator().manual_seed(2))


def _scales(*shape: int) -> Tensor:
    return numbers(*shape, seed=3).abs().mul_(0.01)


def dense(outputs: int, inputs: int) -> DenseWeight:
    return DenseWeight(numbers(outputs, inputs).mul_(0.05))


def int8(outputs: int, inputs: int) -> Int8ChannelWeight:
    return Int8ChannelWeight(_codes(-127, 127, outputs, inputs).to(torch.int8), _scales(outputs))


def int8_dynamic(outputs: int, inputs: int) -> Int8DynamicWeight:
    return Int8DynamicWeight(_codes(-127, 127, outputs, inputs).to(torch.int8), _scales(outputs).float())


def int4(outputs: int, inputs: int) -> Int4GroupWeight:
    codes = _codes(0, 15, outputs, inputs).to(torch.uint8)
    return pack_groups(codes, _scales(outputs, inputs // _GROUP_SIZE), _GROUP_SIZE)


FORMS: dict[str, Callable[[int, int], PlainWeight]] = {
    "bfloat16": dense,
    "int8-w8a16": int8,
    "int8-w8a8": int8_dynamic,
    f"int4-g{_GROUP_SIZE}": int4,
}


def paged_batch(sequences: Sequence[tuple[int, int]]) -> AttentionBatch:
    """Sequences as (tokens in the cache, new tokens); their blocks lie anywhere among each other."""
    needed = [-(-(earlier + new) // BLOCK_SIZE) for earlier, new in sequences]
    free = iter(torch.randperm(sum(needed), generator=torch.Generator().manual_seed(4)).tolist())
    tables = [[next(free) for _ in range(blocks)] for blocks in needed]
    slots, positions, starts = [], [], [0]
    for table, (earlier, new) in zip(tables, sequences, strict=True):
        for position in range(earlier, earlier + new):
            slots.append(table[position // BLOCK_SIZE] * BLOCK_SIZE + position % BLOCK_SIZE)
            positions.append(position)
        starts.append(starts[-1] + new)
    contexts = tuple(earlier + new for earlier, new in sequences)
    return AttentionBatch(
        query_starts=torch.tensor(starts, dtype=torch.int32),
        context_lens=torch.tensor(contexts, dtype=torch.int32),
        block_tables=torch.tensor([table + [0] * (max(needed) - len(table)) for table in tables], dtype=torch.int32),
        slots=torch.tensor(slots),
        positions=torch.tensor(positions),
        query_starts_host=tuple(starts),
        context_lens_host=contexts,
        block_size=BLOCK_SIZE,
    )


def kv_layer(batch: AttentionBatch, *, stored_as_int8: bool) -> KVLayer:
    """One layer's cache, as large as the batch needs it."""
    blocks = int(batch.block_tables.max()) + 1
    shape = (blocks, BLOCK_SIZE, KV_HEADS, HEAD_DIM)
    if not stored_as_int8:
        return KVLayer(numbers(*shape, seed=5), numbers(*shape, seed=6))
    codes, scales = _codes(-127, 127, *shape).to(torch.int8), _scales(*shape[:3]).float()
    return KVLayer(codes, codes.clone(), scales, scales.clone())


def bytes_of(layer: KVLayer) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in layer.tensors())
