"""Decode steps as a GPU gets them, over the Triton kernels: sent, padded, replayed, they give what plain steps give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.engine.device_arm import answers, assert_same, config
from tests.engine.tape_accelerator import Tape, TapeAccelerator, TapedWork
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.kv.settings import KVDtypeName


class RepeatedWork(TapedWork):
    """Triton's kernels are no operations of torch's, and on no tape: the whole work is done again."""

    def __init__(self, work: Callable[[], torch.Tensor]) -> None:
        self.replays = 0
        self._work = work
        with Tape() as tape:
            self.result = work()
        self.operations = {call[0] for call in tape.calls}

    def replay(self) -> None:
        self.replays += 1
        self.result.copy_(self._work())


class RepeatingAccelerator(TapeAccelerator):
    def record(self, work: Callable[[], torch.Tensor]) -> TapedWork:
        self.recorded.append(RepeatedWork(work))
        return self.recorded[-1]


@pytest.mark.parametrize(("kv_dtype", "deterministic"), [("auto", False), ("int8", False), ("auto", True)])
def test_tokens_are_those_of_plain_steps(kv_dtype: KVDtypeName, deterministic: bool, tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path, num_hidden_layers=1)
    settings = config(kernel_set="triton", kv_dtype=kv_dtype, deterministic=deterministic)
    accelerator = RepeatingAccelerator()
    executor = TorchExecutor.load(folder, "fp32", settings, accelerator=accelerator)
    assert executor.info.kernel_set.startswith("triton")
    assert len(accelerator.recorded) == 4
    plain = TorchExecutor.load(folder, "fp32", settings)
    assert_same(answers(executor, settings)[0], answers(plain, settings)[0])
    assert accelerator.replays >= 8
    assert executor.info.kernel_paths["draw_tokens"] == "triton"


@pytest.mark.parametrize("deterministic", [False, True])
def test_nothing_that_is_recorded_comes_from_a_list_of_the_host(deterministic: bool, tmp_path: Path) -> None:
    """It would be a copy from memory that is not pinned, which no driver records."""
    folder, _ = save_tiny_model(tmp_path, num_hidden_layers=1)
    accelerator = RepeatingAccelerator()
    settings = config(kernel_set="triton", deterministic=deterministic, max_active_requests=1)
    TorchExecutor.load(folder, "fp32", settings, accelerator=accelerator)
    [recorded] = accelerator.recorded
    assert isinstance(recorded, RepeatedWork)
    assert torch.ops.aten.index_select.default in recorded.operations
    assert torch.ops.aten.lift_fresh.default not in recorded.operations
