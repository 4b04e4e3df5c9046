"""A GGUF file's tensors, dequantized, renamed and put in order as Hugging Face's safetensors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from numpy.typing import NDArray

from quantgate_engine.errors import ModelError
from quantgate_engine.model.finite_weights import not_finite
from quantgate_engine.model.gguf_architectures import LAYER_TENSORS, TOP_LEVEL_TENSORS
from quantgate_engine.model.gguf_file import GgufFile
from quantgate_engine.model.gguf_rope import FREQUENCY_DIVISORS
from quantgate_engine.model.shard_writer import SHARD_BYTES, ShardWriter
from quantgate_engine.shown import shown_name

_LAYER_NAME = re.compile(r"blk\.(?P<layer>\d+)\.(?P<part>\w+)\.(?P<kind>weight|bias)")
_UNQUANTIZED = {"F32", "F16", "BF16", "F64"}


def write_weights(file: GgufFile, folder: Path, heads: int, kv_heads: int, shard_bytes: int = SHARD_BYTES) -> None:
    """Writes float16 safetensors: the exact dequantized values, rounded once to nearest even."""
    writer = ShardWriter(folder, shard_bytes)
    for name, values in _named_values(file, heads, kv_heads):
        writer.add(name, torch.from_numpy(values))
    writer.finish()


def previous_quantization(file: GgufFile) -> dict[str, Any] | None:
    """How the linear layers of the file were stored, where that was in fewer than 16 bits; else None.

    type: ggml's name of the commonest kind; group_size: weights that share one scale; tensors: matrices by kind.
    """
    kinds = Counter(tensor.tensor_type.name for tensor in file.tensors if len(tensor.shape) == 2)
    quantized = [kind for kind, _ in kinds.most_common() if kind not in _UNQUANTIZED]
    if not quantized:
        return None
    group_size, group_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[quantized[0]]]
    return {
        "type": quantized[0],
        "group_size": group_size,
        "bits_per_weight": group_bytes * 8 / group_size,
        "tensors": dict(sorted(kinds.items())),
        "description": f"{quantized[0]}, groups of {group_size}",
    }


def hugging_face_name(file: GgufFile, name: str) -> str:
    if name in TOP_LEVEL_TENSORS:
        return TOP_LEVEL_TENSORS[name]
    match = _LAYER_NAME.fullmatch(name)
    if match is None or match["part"] not in LAYER_TENSORS:
        raise ModelError(
            f"{file.path}: tensor {shown_name(name)} is none of a {file.architecture_name} decoder that is known here."
        )
    return f"model.layers.{match['layer']}.{LAYER_TENSORS[match['part']]}.{match['kind']}"


def halves_from_pairs(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Undoes llama.cpp's row order of query and key projections; values [heads * head_dim, ...].

    llama.cpp's convert_hf_to_gguf.py (`LlamaModel.permute`) turns row (half, i) of each head into row (i, half).
    """
    pairs = values.reshape(heads, values.shape[0] // heads // 2, 2, *values.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(values.shape)


def _named_values(file: GgufFile, heads: int, kv_heads: int) -> Iterator[tuple[str, NDArray[np.float16]]]:
    rows_by_head = {"attn_q": heads, "attn_k": kv_heads} if file.architecture.rotates_pairs else {}
    for tensor in file.tensors:
        if tensor.name == FREQUENCY_DIVISORS:
            continue
        name = hugging_face_name(file, tensor.name)
        values = file.values(tensor)
        part = tensor.name.split(".")[-2]
        if part in rows_by_head:
            if values.shape[0] % (2 * rows_by_head[part]):
                raise ModelError(
                    f"{file.path}: tensor {tensor.name} has {values.shape[0]} rows, which are no pairs of "
                    f"{rows_by_head[part]} heads; fetch or copy the file again."
                )
            values = halves_from_pairs(values, rows_by_head[part])
        with np.errstate(over="ignore"):
            halves = values.astype(np.float16)
        if not np.isfinite(halves).all():
            raise _refused(file, tensor.name, values, halves)
        yield name, halves


def _refused(file: GgufFile, name: str, values: NDArray[np.float32], halves: NDArray[np.float16]) -> ModelError:
    broken = values.size - int(np.isfinite(values).sum())
    if broken:
        return not_finite(file.path, name, broken, values.size)
    too_large = values.size - int(np.isfinite(halves).sum())
    return ModelError(
        f"{file.path}: {too_large} of the {values.size} values of tensor {name} are larger than float16 can hold, in "
        "which GGUF weights are kept; use the model's safetensors."
    )
