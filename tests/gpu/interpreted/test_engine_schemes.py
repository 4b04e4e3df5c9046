"""The engine with each quantized scheme in float16, as GPUs compute, over the Triton kernels and over the reference."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tests.engine.deterministic_arm import draw_prompts
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.clock import MonotonicClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.base import SampledToken
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.quant.precision import Precision
from quantgate_engine.quant.schemes import SCHEMES
from quantgate_engine.sampling_params import SamplingParams
from quantgate_kernels.kernel_set_names import KernelSetName

PROMPTS = draw_prompts(5, longest=30, vocabulary=257)
OUTPUT_TOKENS = 6
SCHEME_PATHS = {
    "int4-g32": "linear.int4-g32.rows<=1024",
    "int4-g64": "linear.int4-g64.rows<=1024",
    "int8-w8a16": "linear.int8.rows<=1024",
    "int8-w8a8": "linear.int8-w8a8",
}
CLOSE = {"int8-w8a8": 0.25}
"""Log-probabilities apart: a number of the activations that lies between two codes falls to either."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    saved, _ = save_tiny_model(tmp_path_factory.mktemp("model"), num_hidden_layers=1)
    return saved


def greedy_answers(
    folder: ModelFolder, scheme: str, kernel_set: KernelSetName
) -> tuple[list[list[SampledToken]], TorchExecutor]:
    """Of all prompts at once, in steps in which some decode while others are in chunks."""
    config = EngineConfig(kernel_set=kernel_set, max_step_tokens=24, num_kv_blocks=32, max_active_requests=5)
    executor = TorchExecutor.load(folder, scheme, config)
    core = EngineCore(executor, config, MonotonicClock())
    params = SamplingParams(max_tokens=OUTPUT_TOKENS, ignore_eos=True, logprobs=2)
    requests = [core.add_request(f"r{index}", prompt, params) for index, prompt in enumerate(PROMPTS)]
    while core.has_work:
        core.step()
    return [list(request.output) for request in requests], executor


@pytest.mark.parametrize("scheme", list(SCHEME_PATHS))
def test_tokens_are_those_of_the_reference(scheme: str, folder: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a step where the reference's two best tokens are as close as the roundings of 16 bits are."""
    half = Precision(storage=torch.float16, compute=torch.float16)
    monkeypatch.setitem(SCHEMES, scheme, dataclasses.replace(SCHEMES[scheme], precision=lambda _device, _kernels: half))
    expected, _ = greedy_answers(folder, scheme, "reference")
    drawn, executor = greedy_answers(folder, scheme, "triton")
    close, agreed = CLOSE.get(scheme, 0.03), 0
    for ours, theirs in zip(drawn, expected, strict=True):
        for our, their in zip(ours, theirs, strict=True):
            (_, best), (_, second) = their.top_logprobs
            if our.token_id != their.token_id:
                assert best - second < close
                break
            assert our.logprob == pytest.approx(their.logprob, abs=close)
            agreed += 1
    assert agreed > len(PROMPTS) * OUTPUT_TOKENS // 2
    assert executor.info.kernel_set == "triton"
    assert executor.info.kernel_paths[SCHEME_PATHS[scheme]] == "triton"


def test_scheme_paths_are_those_of_every_quantized_scheme() -> None:
    """But for one whose groups do not fit the tiny model."""
    assert set(SCHEME_PATHS) == {name for name in SCHEMES if name.startswith("int")} - {"int4-g128"}
