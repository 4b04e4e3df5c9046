"""The paged KV cache's memory, and how many blocks of it an engine gets."""

from __future__ import annotations

import torch

from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.machine_limits import require_cache_memory
from quantgate_engine.model.config import DecoderConfig
from quantgate_kernels.types import KVLayer

DEFAULT_CONTEXT_TOKENS = 2048


def allocate_kv_cache(
    config: DecoderConfig, num_blocks: int, block_size: int, dtype: torch.dtype, device: torch.device
) -> tuple[KVLayer, ...]:
    """One pair of tensors per layer. Zeroed memory is mapped lazily on CPUs: unused blocks cost no resident memory."""
    shape = (num_blocks, block_size, config.num_kv_heads, config.head_dim)
    return tuple(
        KVLayer(
            keys=torch.zeros(shape, dtype=dtype, device=device), values=torch.zeros(shape, dtype=dtype, device=device)
        )
        for _ in range(config.num_layers)
    )


def context_limit(config: EngineConfig, model_limit: int) -> int:
    """Longest prompt plus output: the setting, and never more than the model was trained for."""
    return min(config.max_context_tokens or model_limit, model_limit)


def require_cache_fits(config: EngineConfig, model: DecoderConfig, dtype: torch.dtype, device: torch.device) -> None:
    """Raises ConfigurationError where the pool that the settings ask for is larger than the device's memory."""
    blocks = block_count(config, context_limit(config, model.max_position_embeddings))
    needed_bytes = blocks * config.block_size * model.kv_bytes_per_token(dtype.itemsize)
    what = f"The KV cache ({blocks} blocks of {config.block_size} tokens)"
    require_cache_memory(needed_bytes, device, what)


def block_count(config: EngineConfig, max_context_tokens: int) -> int:
    """The setting, or enough for every active request to hold its whole context, up to 2,048 tokens each."""
    if config.num_kv_blocks is not None:
        return config.num_kv_blocks
    tokens = min(max_context_tokens, DEFAULT_CONTEXT_TOKENS)
    return config.max_active_requests * -(-tokens // config.block_size)
