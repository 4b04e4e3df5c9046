"""Tokens that are drawn on the device are those that the host would draw, and logits do not come over for them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from tests.engine.device_arm import RecordableReference, config
from tests.engine.tape_accelerator import TapeAccelerator
from tests.engine.tiny_model import TINY_SHAPE, save_tiny_model
from torch import Tensor

from quantgate_engine.executor.base import NoToken, SampledToken, ScheduledSequence
from quantgate_engine.executor.device.device_steps import DeviceSteps
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.sampling.draw import draw_token
from quantgate_engine.sampling_params import SamplingParams
from quantgate_kernels.kernel_set import DrawTokens
from quantgate_kernels.types import DenseWeight


class DrawingReference(RecordableReference):
    """Draws by the engine's own code; row 1 overflows where it is told to."""

    def __init__(self, *, overflows: bool = False) -> None:
        super().__init__()
        self.drawn_rows: list[int] = []
        self._overflows = overflows

    def head(self, x: Tensor, weight: object, *, exact: bool = False) -> Tensor:
        assert isinstance(weight, DenseWeight)
        logits = super().head(x, weight, exact=exact)
        if self._overflows:
            logits[1, 7] = torch.inf
        return logits

    @property
    def draws(self) -> DrawTokens:
        return self._draw_tokens

    def _draw_tokens(
        self, logits: Tensor, temperatures: Tensor, min_p: Tensor, seeds: Tensor, positions: Tensor
    ) -> Tensor:
        self.drawn_rows.append(len(logits))
        rows = zip(temperatures.tolist(), min_p.tolist(), seeds.tolist(), strict=True)
        each = [SamplingParams(temperature=heat, min_p=least, seed=seed) for heat, least, seed in rows]
        finite = logits.nan_to_num(posinf=0.0)
        drawn = [draw_token(finite[i].numpy(), each[i], place) for i, place in enumerate(positions.tolist())]
        return torch.tensor(drawn)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    saved, _ = save_tiny_model(tmp_path_factory.mktemp("model"), num_hidden_layers=2)
    return saved


def load(folder: ModelFolder, kernels: RecordableReference, accelerator: TapeAccelerator | None) -> TorchExecutor:
    return TorchExecutor.load(folder, "fp32", config(), kernels, accelerator=accelerator)


def step(params: Sequence[SamplingParams]) -> tuple[ScheduledSequence, ...]:
    return tuple(
        ScheduledSequence(f"r{index}", (index + 3, 40), 0, (index + 1,), sample=True, params=own)
        for index, own in enumerate(params)
    )


PLAIN = [
    SamplingParams(temperature=0.7, seed=3),
    SamplingParams(temperature=1.5, min_p=0.05, seed=-4),
    SamplingParams(temperature=1e-300, seed=2**63 + 5),
]


def test_seeds_positions_temperatures_and_min_p_arrive(folder: ModelFolder) -> None:
    kernels, accelerator = DrawingReference(), TapeAccelerator()
    executor = load(folder, kernels, accelerator)
    assert executor.execute(step(PLAIN)) == load(folder, RecordableReference(), None).execute(step(PLAIN))
    assert kernels.drawn_rows == [3]
    steps = executor._steps
    assert isinstance(steps, DeviceSteps)
    assert steps._transfer._read.numel() < TINY_SHAPE["vocab_size"] * 4


@pytest.mark.parametrize(
    "other",
    [
        SamplingParams(temperature=0.9, top_k=5),
        SamplingParams(temperature=0.9, top_p=0.5),
        SamplingParams(temperature=0.9, forced_token_ids=(11,), max_tokens=1),
    ],
    ids=["top_k", "top_p", "forced"],
)
def test_rows_that_are_cut_or_forced_are_drawn_by_the_host(other: SamplingParams, folder: ModelFolder) -> None:
    kernels = DrawingReference()
    params = [PLAIN[0], other]
    drawn = load(folder, kernels, TapeAccelerator()).execute(step(params))
    assert drawn == load(folder, RecordableReference(), None).execute(step(params))
    assert kernels.drawn_rows == []


def test_greedy_rows_and_drawn_rows_of_a_step_take_their_own_ways(folder: ModelFolder) -> None:
    kernels = DrawingReference()
    params = [SamplingParams(), PLAIN[0], SamplingParams(logprobs=2), PLAIN[1]]
    drawn = load(folder, kernels, TapeAccelerator()).execute(step(params))
    expected = load(folder, RecordableReference(), None).execute(step(params))
    assert [token.token_id for token in drawn if isinstance(token, SampledToken)] == [
        token.token_id for token in expected if isinstance(token, SampledToken)
    ]
    assert kernels.drawn_rows == [2]


def test_a_row_that_overflowed_gets_no_token_and_the_others_theirs(folder: ModelFolder) -> None:
    drawn = load(folder, DrawingReference(overflows=True), TapeAccelerator()).execute(step(PLAIN))
    assert [type(token) for token in drawn] == [SampledToken, NoToken, SampledToken]
