"""Steps as a GPU gets them give the tokens that the CPU's give: sent in one transfer, recorded, padded, replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.device_arm import PARAMS, RecordableReference, answers, assert_same, config, load, sequence
from tests.engine.tape_accelerator import TapeAccelerator
from tests.engine.tiny_model import save_tiny_model
from torch.utils._python_dispatch import TorchDispatchMode

from quantgate_engine.executor.base import ScheduledSequence
from quantgate_engine.executor.device.device_steps import DeviceSteps
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.kv.settings import KVDtypeName
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings
from quantgate_kernels.reference.kernels import ReferenceKernels


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    saved, _ = save_tiny_model(tmp_path_factory.mktemp("model"), num_hidden_layers=2)
    return saved


@pytest.mark.parametrize("kv_dtype", ["auto", "int8"])
@pytest.mark.parametrize("cuda_graphs", [True, False])
def test_tokens_are_those_of_the_cpu(cuda_graphs: bool, kv_dtype: KVDtypeName, folder: ModelFolder) -> None:
    accelerator = TapeAccelerator()
    settings = config(cuda_graphs=cuda_graphs, kv_dtype=kv_dtype)
    on_host, on_device = load(folder, settings, None), load(folder, settings, accelerator)
    assert_same(answers(on_device, settings)[0], answers(on_host, settings)[0])
    # 1, 2, 4 and 5 sequences, and no context is longer than the pool.
    assert len(accelerator.recorded) == on_device.info.recorded_steps == (4 if cuda_graphs else 0)
    assert on_host.info.recorded_steps is None
    assert (accelerator.replays >= 8) == cuda_graphs


def test_swapped_blocks_come_back_as_they_were(folder: ModelFolder) -> None:
    settings = config(
        num_kv_blocks=14,
        admission=AdmissionSettings(estimator="optimistic"),
        preemption=PreemptionSettings(mode="swap", host_blocks=16),
    )
    settings_with_room = config()
    expected, _ = answers(load(folder, settings_with_room, None), settings_with_room)
    found, totals = answers(load(folder, settings, TapeAccelerator()), settings)
    assert_same(found, expected)
    assert totals.preemption_count > 0


def test_padding_touches_the_spare_block_alone(folder: ModelFolder) -> None:
    """Three sequences in a recording of four, over a cache whose free blocks are as bad as memory can be."""
    tokens = {}
    for graphs in (True, False):
        accelerator = TapeAccelerator()
        executor = load(folder, config(cuda_graphs=graphs), accelerator)
        cache = executor._cache
        before = [torch.full_like(part, torch.nan) for layer in cache for part in layer.tensors()]
        with torch.inference_mode():
            for layer in cache:
                for part in layer.tensors():
                    part.fill_(torch.nan)
                    part[[1, 2, 3]] = 0.5
        tokens[graphs] = executor.execute((sequence(0, 3, 1), sequence(1, 8, 2), sequence(2, 5, 3)))
        assert accelerator.replays == graphs
        for part, bad in zip((part for layer in cache for part in layer.tensors()), before, strict=True):
            others = [block for block in range(executor.num_blocks) if block not in (1, 2, 3)]
            assert torch.equal(part[others].isnan(), bad[others].isnan())
    assert tokens[True] == tokens[False]


class Transfers(TorchDispatchMode):
    """Counts copies between tensors that were there before, by their names."""

    def __init__(self, places: dict[int, str]) -> None:
        super().__init__()
        self._places = places
        self.seen: list[str] = []

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if operation is torch.ops.aten.copy_.default:
            into, source = (self._places.get(tensor.untyped_storage().data_ptr(), "device") for tensor in args[:2])
            self.seen += [f"{source} to {into}"] if source != into else []
        return operation(*args, **(kwargs or {}))


def test_a_greedy_step_is_one_copy_each_way_and_one_wait(folder: ModelFolder) -> None:
    accelerator = TapeAccelerator()
    executor = load(folder, config(), accelerator)
    steps = executor._steps
    assert isinstance(steps, DeviceSteps)
    step = (sequence(0, 3, 1), sequence(1, 8, 2), sequence(2, 5, 3))
    executor.execute(step)
    transfer = steps._transfer
    host = {area.untyped_storage().data_ptr(): "host" for area in (transfer._writer.area, transfer._read)}
    waited = accelerator.finished
    with Transfers(host) as transfers:
        executor.execute(step)
    assert transfers.seen == ["host to device", "device to host"]
    assert accelerator.finished == waited + 1


def test_a_step_of_which_nothing_is_read_is_waited_for(folder: ModelFolder) -> None:
    accelerator = TapeAccelerator()
    executor = load(folder, config(), accelerator)
    waited = accelerator.finished
    chunk = ScheduledSequence("r", tuple(range(7)), 0, (1,), sample=False, params=PARAMS[0])
    assert executor.execute((chunk,)) == [None]
    assert accelerator.finished == waited + 1


def test_a_kernel_set_that_reads_tensors_is_not_recorded_and_still_right(
    folder: ModelFolder, caplog: pytest.LogCaptureFixture
) -> None:
    class Reading(RecordableReference):
        def silu_and_mul(self, gate_up: torch.Tensor) -> torch.Tensor:
            assert gate_up.sum().item() < 1e9
            return super().silu_and_mul(gate_up)

    settings = config()
    accelerator = TapeAccelerator()
    executor = TorchExecutor.load(folder, "fp32", settings, Reading(), accelerator=accelerator)
    assert "Decode steps are not recorded as CUDA graphs" in caplog.text
    assert "operation not permitted" in caplog.text
    assert executor.info.recorded_steps == 0
    assert_same(answers(executor, settings)[0], answers(load(folder, settings, None), settings)[0])
    assert accelerator.replays == 0


def test_a_set_that_does_not_say_so_is_not_recorded(folder: ModelFolder) -> None:
    accelerator = TapeAccelerator()
    executor = TorchExecutor.load(folder, "fp32", config(), ReferenceKernels(), accelerator=accelerator)
    assert accelerator.recorded == []
    assert executor.info.recorded_steps == 0


def test_contexts_above_the_shortest_bound_have_recordings_of_their_own(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path, num_hidden_layers=1, max_position_embeddings=2048)
    accelerator = TapeAccelerator()
    executor = load(folder, config(num_kv_blocks=200, max_active_requests=1), accelerator)
    assert len(accelerator.recorded) == 2
    for length, replays in ((1024, [0, 1]), (1025, [1, 1])):
        table = tuple(range(1, 130))
        step = ScheduledSequence("r", (3,), length - 1, table, sample=True, params=PARAMS[0])
        executor.execute((step,))
        assert [work.replays for work in accelerator.recorded] == replays


def test_engines_over_one_model_take_turns_on_the_device(folder: ModelFolder) -> None:
    """Each has a cache, a spare block and recordings of its own; one finds nothing of the other's steps."""
    settings = config()
    accelerator = TapeAccelerator()
    one = load(folder, settings, accelerator)
    other = one.beside(config(num_kv_blocks=30, max_active_requests=4))
    assert len(accelerator.recorded) == 7
    assert (one.info.recorded_steps, other.info.recorded_steps) == (4, 3)
    expected = load(folder, settings, None)
    steps = [(sequence(0, 3, 1), sequence(1, 8, 2)), (sequence(2, 5, 3),)]
    for step in (*steps, *steps):
        wanted = expected.execute(step)
        assert one.execute(step) == wanted
        assert other.execute(step) == wanted
    assert [work.replays for work in accelerator.recorded].count(2) == 4
