"""Decode steps as a GPU gets them, over the Triton kernels: sent, padded, replayed, they give what plain steps give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.engine.device_arm import answers, assert_same, config
from tests.engine.tape_accelerator import Tape, TapeAccelerator, TapedWork
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.executor.base import BlockCopy, CopyKind
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.kv.settings import KVDtypeName
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings


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


@pytest.mark.parametrize("kv_dtype", ["auto", "int8"])
def test_forks_and_swaps_move_whole_blocks(kv_dtype: KVDtypeName, tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    swap = PreemptionSettings(mode="swap", host_blocks=3)
    settings = config(kernel_set="triton", kv_dtype=kv_dtype, num_kv_blocks=4, cuda_graphs=False, preemption=swap)
    executor = TorchExecutor.load(folder, "fp32", settings, accelerator=TapeAccelerator())
    tensors = [tensor for layer in executor._cache for tensor in layer.tensors()]
    for place, tensor in enumerate(tensors):
        for block in range(4):
            tensor[block] = 10 * place + block
    moves = [(CopyKind.SWAP_OUT, 0, 2), (CopyKind.SWAP_OUT, 3, 1), (CopyKind.FORK, 2, 0), (CopyKind.SWAP_IN, 2, 3)]
    executor.copy_blocks(tuple(BlockCopy("r", *move) for move in moves))
    for place, tensor in enumerate(tensors):
        assert [set((block - 10 * place).flatten().tolist()) for block in tensor[:4]] == [{2}, {1}, {2}, {0}]
    assert executor.info.kernel_paths["copy_blocks"] == "triton"


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
