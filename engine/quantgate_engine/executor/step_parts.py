"""What an executor computes with: its steps, and the caches that they read and write."""

from __future__ import annotations

import logging
from typing import NamedTuple

from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.block_copies import CarryOut, HostBlockCopies
from quantgate_engine.executor.device.accelerator import Accelerator
from quantgate_engine.executor.device.device_block_copies import DeviceBlockCopies, StagedBlocks
from quantgate_engine.executor.device.device_draws import DeviceDraws
from quantgate_engine.executor.device.device_steps import DeviceSteps
from quantgate_engine.executor.device.graph_shapes import graph_contexts, graph_sequences
from quantgate_engine.executor.device.pool_size import pool_blocks
from quantgate_engine.executor.kv_cache import HOST, block_count, require_cache_fits
from quantgate_engine.executor.kv_format import KVFormat
from quantgate_engine.executor.step_decoder import StepDecoder
from quantgate_engine.model.decoder import Decoder
from quantgate_kernels.types import KVLayer


class StepParts(NamedTuple):
    """num_blocks: of the pool; the cache may have more, which belong to nobody. draws: None where the host draws.

    recorded_steps: see `ModelInfo.recorded_steps`.
    """

    steps: StepDecoder
    draws: DeviceDraws | None
    recorded_steps: int | None
    num_blocks: int
    cache: tuple[KVLayer, ...]
    copy_blocks: CarryOut


def parts_on_host(decoder: Decoder, config: EngineConfig, kv_format: KVFormat, max_context_tokens: int) -> StepParts:
    """Raises ConfigurationError where the caches do not fit into memory."""
    model, size = decoder.config, config.block_size
    num_blocks = block_count(config, max_context_tokens)
    # Again, because by now the weights have taken their share, and other engines over them theirs.
    require_cache_fits(config, model, kv_format, num_blocks, HOST)
    pool = kv_format.allocate(model, num_blocks, size, HOST)
    swapped = kv_format.allocate(model, config.preemption.host_blocks, size, HOST)
    return StepParts(decoder, None, None, num_blocks, pool.layers, HostBlockCopies(pool.planes, swapped.planes))


def parts_on_device(
    decoder: Decoder, config: EngineConfig, kv_format: KVFormat, max_context_tokens: int, accelerator: Accelerator
) -> StepParts:
    """Raises ConfigurationError where the largest step and the caches do not fit into memory."""
    model, size = decoder.config, config.block_size
    steps = DeviceSteps(decoder, accelerator)
    staged = StagedBlocks(kv_format.planes(model, size), config.preemption.host_blocks, accelerator)
    recorded = config.cuda_graphs and decoder.can_be_recorded
    num_blocks = pool_blocks(
        steps, accelerator, config, model, kv_format, max_context_tokens=max_context_tokens, recorded=recorded
    )
    require_cache_fits(config, model, kv_format, num_blocks, accelerator.device)
    spare_block = num_blocks
    pool = kv_format.allocate(model, num_blocks + 1, size, accelerator.device)
    copies = DeviceBlockCopies(decoder.kernels, accelerator, pool.planes, staged, config.preemption.host_blocks)
    longest = min(max_context_tokens, num_blocks * size)
    recorded_steps = _record(steps, pool.layers, config, longest, spare_block) if recorded else 0
    return StepParts(steps, steps.draws, recorded_steps, num_blocks, pool.layers, copies)


def _record(
    steps: DeviceSteps, cache: tuple[KVLayer, ...], config: EngineConfig, longest: int, spare_block: int
) -> int:
    """How many were recorded."""
    try:
        return steps.record_decodes(
            cache,
            sequences=graph_sequences(config.max_active_requests),
            contexts=graph_contexts(longest),
            spare_block=spare_block,
        )
    except RuntimeError as failure:
        # What a driver or a library cannot record it can still compute.
        logging.getLogger(__name__).warning(
            "Decode steps are not recorded as CUDA graphs, and start kernel by kernel: %s",
            str(failure).partition("\n")[0],
        )
        return 0
