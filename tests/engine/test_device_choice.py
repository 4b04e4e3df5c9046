"""Which device an engine takes: by its settings, and by what torch sees."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.device.choice import chosen_device, shown_device
from quantgate_engine.executor.torch_executor import TorchExecutor


def _gpu_is_there(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"a GPU, number {device.index}")


def test_auto_takes_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    _gpu_is_there(monkeypatch, there=True)
    assert chosen_device("auto") == chosen_device("cuda") == torch.device("cuda", 0)
    assert chosen_device("cpu") == torch.device("cpu")
    assert shown_device(chosen_device("auto")) == "a GPU, number 0"


def test_without_a_gpu_auto_takes_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    _gpu_is_there(monkeypatch, there=False)
    assert shown_device(chosen_device("auto")) == "cpu"


def test_a_gpu_that_is_not_there_is_refused_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _gpu_is_there(monkeypatch, there=False)
    folder, _ = save_tiny_model(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ConfigurationError, match=r"EngineConfig\.device is 'cuda', and torch sees no GPU"):
        TorchExecutor.load(folder, "fp32", EngineConfig(device="cuda"))


def test_a_variable_that_may_hide_the_gpus_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _gpu_is_there(monkeypatch, there=False)
    for variable in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(ConfigurationError, match=r"torch sees no GPU \(CUDA_VISIBLE_DEVICES is '7'\); install"):
        chosen_device("cuda")


def test_what_is_loaded_tells_its_device(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    assert TorchExecutor.load(folder, "fp32", EngineConfig(device="cpu", num_kv_blocks=4)).info.device == "cpu"
