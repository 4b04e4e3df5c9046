"""How many blocks an engine's KV cache gets, and whether they fit in memory."""

from __future__ import annotations

import torch

from quantgate_engine.config import EngineConfig
from quantgate_engine.counted import counted
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.kv_format import KVFormat
from quantgate_engine.executor.machine_limits import require_memory
from quantgate_engine.model.config import DecoderConfig

DEFAULT_CONTEXT_TOKENS = 2048
HOST = torch.device("cpu")


def context_limit(config: EngineConfig, model_limit: int) -> int:
    """Longest prompt plus output. Raises ConfigurationError where the setting is above what the model was made for."""
    asked = config.max_context_tokens
    if asked is not None and asked > model_limit:
        raise ConfigurationError(
            f"max_context_tokens is {asked}; expected at most {model_limit}, the longest context of the model; lower "
            "it, or leave it out."
        )
    return model_limit if asked is None else asked


def require_cache_fits(
    config: EngineConfig, model: DecoderConfig, kv_format: KVFormat, blocks: int, device: torch.device
) -> None:
    """Raises ConfigurationError where there is not memory enough now for the pool, or for the blocks on the host."""
    block_bytes = config.block_size * kv_format.bytes_per_token(model)
    require_memory(
        blocks * block_bytes,
        device,
        f"The KV cache ({counted(blocks, 'block')} of {counted(config.block_size, 'token')})",
        "lower num_kv_blocks, or max_active_requests and max_context_tokens",
    )
    host_blocks = config.preemption.host_blocks
    if host_blocks:
        same_memory = blocks if device.type == HOST.type else 0
        require_memory(
            (host_blocks + same_memory) * block_bytes,
            HOST,
            f"Swapping to the host (preemption.host_blocks: {counted(host_blocks, 'block')} of "
            f"{counted(config.block_size, 'token')}" + (f", beside the KV cache of {blocks})" if same_memory else ")"),
            "lower preemption.host_blocks",
        )


def block_count(config: EngineConfig, max_context_tokens: int) -> int:
    """The setting, or enough for every active request to hold its whole context, up to 2,048 tokens each."""
    if config.num_kv_blocks is not None:
        return config.num_kv_blocks
    tokens = min(max_context_tokens, DEFAULT_CONTEXT_TOKENS)
    return config.max_active_requests * -(-tokens // config.block_size)
