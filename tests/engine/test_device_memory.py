"""How many KV blocks a device gets after its largest step was tried, and steps that run out of memory all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.device_arm import RecordableReference, answers, assert_same, config, load, sequence
from tests.engine.tape_accelerator import TapeAccelerator
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.torch_executor import TorchExecutor

BLOCK_BYTES = 3 * 2 * 2 * 8 * 32 * 4
"""Of the tiny model in float32: layers, keys and values, KV heads, tokens of a block, numbers of a head, bytes."""


def _loaded(tmp_path: Path, blocks_free: float, peak_blocks: float, **settings: Any) -> TorchExecutor:
    folder, _ = save_tiny_model(tmp_path)
    accelerator = TapeAccelerator(free_bytes=int(blocks_free * BLOCK_BYTES), peak_bytes=int(peak_blocks * BLOCK_BYTES))
    values = config(num_kv_blocks=None, max_context_tokens=80, **settings)
    return TorchExecutor.load(folder, "fp32", values, RecordableReference(), accelerator=accelerator)


@pytest.mark.parametrize(
    ("settings", "blocks"),
    [
        # As on a CPU: 5 contexts of 80 tokens in blocks of 8.
        ({}, 50),
        ({"kv_memory_share": 0.5}, 90),
        ({"kv_memory_share": 1.0}, 180),
        ({"kv_memory_share": 0.5, "cuda_graphs": False}, 95),
        ({"num_kv_blocks": 7}, 7),
    ],
    ids=str,
)
def test_the_pool_of_a_device(settings: dict[str, Any], blocks: int, tmp_path: Path) -> None:
    chosen = {"num_kv_blocks": None} | settings
    folder, _ = save_tiny_model(tmp_path)
    accelerator = TapeAccelerator(free_bytes=200 * BLOCK_BYTES, peak_bytes=10 * BLOCK_BYTES)
    values = config(max_context_tokens=80, **chosen)
    executor = TorchExecutor.load(folder, "fp32", values, RecordableReference(), accelerator=accelerator)
    assert executor.num_blocks == blocks
    assert executor._cache[0].keys.shape[0] == blocks + 1


def test_without_room_for_all_contexts_the_pool_takes_nine_tenths(tmp_path: Path) -> None:
    assert _loaded(tmp_path, blocks_free=40, peak_blocks=5).num_blocks == 27


def test_a_pool_that_is_too_small_for_one_context_is_refused_with_numbers(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"gets 9 blocks of 8 tokens, less than one context \(10\)"):
        _loaded(tmp_path, blocks_free=20, peak_blocks=5)


def test_a_largest_step_that_finds_no_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(_self: object, _work: object) -> int:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nmore")

    monkeypatch.setattr(TapeAccelerator, "peak_bytes", no_memory)
    with pytest.raises(ConfigurationError, match=r"a step of 24 tokens in 5 requests does not fit .*2 GiB"):
        _loaded(tmp_path, blocks_free=200, peak_blocks=0)


class ShortOfMemory(RecordableReference):
    """Of a step's rows it takes so many at a time, in one of its operations."""

    def __init__(self, operation: str, most_rows: int) -> None:
        super().__init__()
        self.failures = 0
        computed = getattr(super(), operation)

        def limited(x: torch.Tensor, *others: Any, **options: Any) -> torch.Tensor:
            if x.shape[0] > most_rows:
                self.failures += 1
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nmore")
            result: torch.Tensor = computed(x, *others, **options)
            return result

        setattr(self, operation, limited)


@pytest.mark.parametrize("on_device", [True, False])
@pytest.mark.parametrize(("operation", "most_rows"), [("silu_and_mul", 7), ("head", 1)])
def test_steps_shrink_and_every_request_gets_its_tokens(
    operation: str, most_rows: int, on_device: bool, tmp_path: Path
) -> None:
    folder, _ = save_tiny_model(tmp_path)
    settings = config()
    kernels = ShortOfMemory(operation, most_rows)
    accelerator = TapeAccelerator() if on_device else None
    executor = TorchExecutor.load(folder, "fp32", settings, kernels, accelerator=accelerator)
    found, totals = answers(executor, settings)
    expected, _ = answers(load(folder, settings, None), settings)
    assert_same(found, expected)
    assert totals.oom_count == kernels.failures > 0
    assert totals.request_abort_count == totals.preemption_count == 0


def test_a_failed_step_is_waited_for_before_the_next_is_sent(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    accelerator = TapeAccelerator()
    kernels = ShortOfMemory("silu_and_mul", 2)
    settings = config(cuda_graphs=False)
    executor = TorchExecutor.load(folder, "fp32", settings, kernels, accelerator=accelerator)
    waited = accelerator.finished
    with pytest.raises(MemoryError, match="2 GiB"):
        executor.execute((sequence(0, 3, 1), sequence(1, 8, 2), sequence(2, 5, 3)))
    assert accelerator.finished == waited + 1
    assert executor.execute((sequence(0, 3, 1),))[0] is not None
