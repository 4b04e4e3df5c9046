"""How benchmarks/gpu.py measures the engine, on the CPU and a tiny model: which steps count, and as what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from unittest.mock import patch

import pytest
import torch
from benchmarks.on_gpu import engine_speed
from benchmarks.on_gpu.engine_speed import SETTINGS, EngineSpeed, Load, decode_bytes, engine_speeds, graphs_told
from benchmarks.on_gpu.random_llama import RandomCheckpoint, random_llama
from tests.engine.device_arm import RecordableReference
from tests.engine.tape_accelerator import TapeAccelerator, TapedWork

from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model import loader
from quantgate_kernels.roofline import DeviceLimits

TINY = {
    "vocab_size": 64, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
LOAD = Load(prompt=48, prompts=3, batches=(1, 4), context=20, answer=12)
ON_CPU = replace(
    SETTINGS, device="cpu", kernel_set="reference", max_active_requests=4, max_step_tokens=48, max_context_tokens=64,
    num_kv_blocks=32,
)  # fmt: skip
LIMITS = DeviceLimits(1e9, 1e12, None, 1e12, threads=1, measured_by={})


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_speed, "random_llama", partial(random_llama, **TINY))


@pytest.mark.usefixtures("tiny")
def test_every_phase_is_measured_with_graphs_and_without() -> None:
    found = engine_speeds("fp32", torch.device("cpu"), LIMITS, ON_CPU, LOAD)
    phases = [("prefill", 1), ("decode", 1), ("decode", 4)]
    assert [(row.phase, row.batch) for row in found] == phases * 2
    assert [row.cuda_graphs for row in found] == [False] * 3 + [True] * 3
    for row in found:
        assert row.step_s is not None
        assert row.tokens_per_s is not None
        if row.phase == "decode":
            assert row.tokens_per_s == pytest.approx(row.batch / row.step_s)
            assert row.bound_step_s is not None
    assert len({row.weight_bytes for row in found}) == 1


class Device(TapeAccelerator):
    """Of engines whose settings name no device."""

    def __init__(self, *, refuses: bool) -> None:
        super().__init__()
        self._refuses = refuses

    def record(self, work: Callable[[], torch.Tensor]) -> TapedWork:
        if self._refuses:
            raise RuntimeError("operation not permitted when stream is capturing")
        return super().record(work)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(("refuses", "told"), [(False, "yes"), (True, "none recorded")])
def test_graphs_are_told_where_decode_steps_were_recorded(
    refuses: bool, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = partial(TorchExecutor.load, kernels=RecordableReference(), accelerator=Device(refuses=refuses))
    monkeypatch.setattr(TorchExecutor, "load", load)
    found = engine_speeds("fp32", torch.device("cpu"), LIMITS, ON_CPU, LOAD)
    # 1, 2 and 4 sequences.
    assert [row.recorded_steps for row in found] == [0] * 3 + [0 if refuses else 3] * 3
    assert [graphs_told(asdict(row)) for row in found] == ["no"] * 3 + [told] * 3


def test_what_did_not_run_tells_what_is_asked_for() -> None:
    rows = [EngineSpeed("fp16", "decode", 1, graphs, 100) for graphs in (False, True)]
    assert [graphs_told(asdict(row)) for row in rows] == ["no", "yes"]


def test_decodes_read_weights_head_and_what_they_see() -> None:
    info = type("Info", (), {"linear_weight_bytes": 1000, "kv_bytes_per_token": 8})()
    head = 2 * 128_256 * 4096
    assert decode_bytes(info, 4, LOAD) == 1000 + head + 4 * 26 * 8


def test_weights_are_random_only_inside() -> None:
    own = loader.Checkpoint
    with random_llama(torch.device("meta")) as folder:
        assert (folder.path / "config.json").is_file()
        with loader.Checkpoint(folder.path) as checkpoint:
            assert isinstance(checkpoint, RandomCheckpoint)
            assert checkpoint.take("any", (3, 5)).shape == (3, 5)
    assert loader.Checkpoint is own
    assert not folder.path.exists()


@pytest.mark.usefixtures("tiny")
def test_a_request_that_fails_is_told() -> None:
    with (
        patch("quantgate_engine.executor.torch_executor.TorchExecutor.execute", side_effect=ValueError("broken")),
        pytest.raises(RuntimeError, match="broken"),
    ):
        engine_speeds("fp32", torch.device("cpu"), None, ON_CPU, LOAD)
