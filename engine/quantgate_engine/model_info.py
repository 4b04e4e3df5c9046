"""What an arm really is: widths, bytes and paths, for manifests and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

REPRODUCES_AT_LOAD = "load_reproduces_source_grid"
"""In provenance: whether every weight that was quantized at load lay on the scheme's grid before."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A loaded model, and the engine that serves it.

    device: what it computes on: `cpu`, or the GPU's name.
    weight_bytes: bytes of all weight tensors, each counted once (a tied head is the embedding). What a kernel set keeps
    beside them is not counted: the INT8 screen of a 16-bit head is half as large as that head.
    linear_weight_bytes: those of the decoder's linear layers, scales included, biases and the head not.
    compute_dtype: of activations; `bfloat16, linear layers int8` where products of linear layers round them further.
    head_dtype: in which embedding and head are stored; kv_dtype: of the cache.
    kv_bytes_per_token: keys and values of all layers for one token, scales included where kv_dtype is int8.
    kernel_paths: which implementation each operation takes; without a step program it fills as operations run.
    provenance: as ModelFolder.provenance.
    recorded_steps: shapes of decode steps that the engine's device replays as CUDA graphs; 0 where it starts all kernel
    by kernel, None where the host computes.
    """

    name: str
    scheme: str
    device: str
    weight_bytes: int
    linear_weight_bytes: int
    load_seconds: float
    compute_dtype: str
    head_dtype: str
    kv_dtype: str
    kv_bytes_per_token: int
    kernel_set: str
    kernel_paths: dict[str, str]
    provenance: dict[str, Any]
    weights_sha256: str
    tokenizer_sha256: str
    recorded_steps: int | None = None
