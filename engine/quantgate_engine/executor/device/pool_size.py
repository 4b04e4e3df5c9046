"""How many blocks the KV pool of a device gets, after its largest step was tried."""

from __future__ import annotations

import torch

from quantgate_engine.config import EngineConfig
from quantgate_engine.counted import counted
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.device.accelerator import Accelerator
from quantgate_engine.executor.device.memory_plan import (
    DEFAULT_SHARE,
    PEAKS_WITH_GRAPHS,
    blocks_that_fit,
    largest_step,
    least_blocks,
    longest_context,
)
from quantgate_engine.executor.kv_cache import block_count
from quantgate_engine.executor.kv_format import KVFormat
from quantgate_engine.executor.machine_limits import shown_size
from quantgate_engine.executor.memory_errors import refusing_what_does_not_fit
from quantgate_engine.executor.step_decoder import StepDecoder
from quantgate_engine.model.config import DecoderConfig

_SMALLER_STEPS = "lower max_step_tokens, max_active_requests or max_context_tokens"


def pool_blocks(
    steps: StepDecoder,
    accelerator: Accelerator,
    config: EngineConfig,
    model: DecoderConfig,
    kv_format: KVFormat,
    *,
    max_context_tokens: int,
    recorded: bool,
) -> int:
    """`num_kv_blocks` where it is set; else what fits, and without `kv_memory_share` not more than a CPU's pool has.

    recorded: whether steps will be recorded too. Raises ConfigurationError where the largest step does not fit beside
    the weights, or leaves too little.
    """
    if config.num_kv_blocks is not None:
        return config.num_kv_blocks
    block_bytes = config.block_size * kv_format.bytes_per_token(model)
    context = longest_context(
        max_context_tokens,
        accelerator.free_bytes() // block_bytes * config.block_size,
        config.max_active_requests,
        config.max_step_tokens,
    )
    peak = _peak_bytes(steps, accelerator, config, model, kv_format, context)
    needed = peak * (PEAKS_WITH_GRAPHS if recorded else 1)
    free = accelerator.free_bytes()
    share = config.kv_memory_share
    blocks = blocks_that_fit(free, needed, DEFAULT_SHARE if share is None else share, block_bytes)
    if share is None:
        blocks = min(blocks, block_count(config, max_context_tokens))
    least = least_blocks(max_context_tokens, config.block_size)
    if blocks < least:
        raise ConfigurationError(
            f"Of {shown_size(free)} that the weights leave on the device, steps need {shown_size(needed)}, "
            f"and the KV cache gets {counted(blocks, 'block')} of {counted(config.block_size, 'token')}, less than one "
            f"context ({least}); {_SMALLER_STEPS}, or take a scheme of smaller weights."
        )
    return blocks


def _peak_bytes(
    steps: StepDecoder,
    accelerator: Accelerator,
    config: EngineConfig,
    model: DecoderConfig,
    kv_format: KVFormat,
    context: int,
) -> int:
    """What the step with the most tokens, sequences and context needs, whole logits of every sequence with it."""
    sequences, size = config.max_active_requests, config.block_size
    rows = largest_step(config.max_step_tokens, sequences, context, size)
    cache = kv_format.allocate(model, 1, size, accelerator.device).layers
    last_rows = [start - 1 for start in rows.query_starts[1:]]

    def work() -> None:
        steps.logits(steps.hidden_states(rows, cache, last_rows), exact=True)

    tokens = counted(config.max_step_tokens, "token")
    largest = f"Beside the weights, a step of {tokens} in {counted(sequences, 'request')}"
    with refusing_what_does_not_fit(largest, _SMALLER_STEPS), torch.inference_mode():
        return accelerator.peak_bytes(work)
