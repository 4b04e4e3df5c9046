"""Arithmetic that overflows at run time fails the request that it happens to, by a sentence, and nobody beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engine.kernel_sets import NAMED_SETS, runnable
from tests.engine.tiny_model import save_tiny_model
from tests.overflowing_model import make_overflow

from quantgate_engine.clock import MonotonicClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.errors import RunError
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.outputs import end_of
from quantgate_engine.request import Request
from quantgate_engine.sampling_params import SamplingParams
from quantgate_kernels.kernel_set_names import KernelSetName

OVERFLOWING, HUGE = 99, 100

PROMPTS = {"before": [5, 6, 7, 8], "nan": [5, OVERFLOWING, 7], "huge": [5, 6, HUGE], "after": [9, 10, 11, 12, 13]}
PARAMS = {
    "greedy": SamplingParams(max_tokens=6, ignore_eos=True),
    "sampled": SamplingParams(max_tokens=6, ignore_eos=True, temperature=1.0, top_p=0.9),
    "logprobs": SamplingParams(max_tokens=6, ignore_eos=True, logprobs=3),
    "penalised": SamplingParams(max_tokens=6, ignore_eos=True, repetition_penalty=1.2),
    "forced": SamplingParams(max_tokens=3, forced_token_ids=(3, 4, 5), logprobs=0),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    path = tmp_path_factory.mktemp("model")
    saved = save_tiny_model(path, tie_word_embeddings=False)[0]
    make_overflow(path, OVERFLOWING, HUGE)
    return saved


def run(executor: TorchExecutor, prompts: dict[str, list[int]], params: SamplingParams) -> dict[str, Request]:
    core = EngineCore(executor, EngineConfig(max_active_requests=4), MonotonicClock())
    requests = {name: core.add_request(name, tuple(prompt), params) for name, prompt in prompts.items()}
    while core.has_work:
        core.step()
    core.check_integrity()
    return requests


@pytest.mark.parametrize("kind", PARAMS)
@pytest.mark.parametrize(
    ("kernel_set", "scheme", "config"),
    [
        *((name, scheme, {}) for name in NAMED_SETS for scheme in ("fp32", "bf16", "int8-w8a8", "int4-g64")),
        ("cpu", "bf16", {"deterministic": True}),
        ("cpu", "bf16", {"kv_dtype": "int8"}),
    ],
    ids=str,
)
def test_only_the_request_that_overflows_fails(
    kernel_set: KernelSetName, scheme: str, config: dict[str, Any], kind: str, folder: ModelFolder
) -> None:
    executor = TorchExecutor.load(
        folder, scheme, EngineConfig(kernel_set=runnable(kernel_set), max_active_requests=4, **config)
    )
    alone = {name: run(executor, {name: PROMPTS[name]}, PARAMS[kind])[name] for name in ("before", "after")}
    together = run(executor, PROMPTS, PARAMS[kind])
    for name in ("nan", "huge"):
        end = end_of(together[name])
        assert (end.status, together[name].output) == ("failed", [])
        assert "overflowed" in str(end.error)
    for name, expected in alone.items():
        assert end_of(together[name]).status == "finished"
        assert [token.token_id for token in together[name].output] == [token.token_id for token in expected.output]


@pytest.mark.parametrize("kernel_set", NAMED_SETS)
def test_blocks_that_held_no_numbers_do_no_harm_to_who_has_them_next(
    kernel_set: KernelSetName, folder: ModelFolder
) -> None:
    executor = TorchExecutor.load(
        folder, "bf16", EngineConfig(kernel_set=runnable(kernel_set), max_active_requests=4, num_kv_blocks=2)
    )
    [expected] = run(executor, {"after": PROMPTS["after"]}, PARAMS["logprobs"]).values()
    run(executor, {"nan": [OVERFLOWING] * 30}, PARAMS["logprobs"])
    [found] = run(executor, {"after": PROMPTS["after"]}, PARAMS["logprobs"]).values()
    assert found.output == expected.output


def test_scores_of_what_overflows_are_an_error_and_no_numbers(folder: ModelFolder) -> None:
    executor = TorchExecutor.load(folder, "fp32", EngineConfig(max_active_requests=2))
    assert len(executor.token_scores(PROMPTS["before"], 1)) == 3
    refused = "Nothing can be told of these tokens: the model's arithmetic overflowed"
    for name in ("nan", "huge"):
        with pytest.raises(RunError, match=refused):
            executor.token_scores([*PROMPTS[name], 5], 1)
        with pytest.raises(RunError, match=refused):
            executor.logits(PROMPTS[name])
        with pytest.raises(RunError, match=refused):
            executor.continuation_logits(PROMPTS[name], [[5, 6]])


@pytest.mark.parametrize("kind", ["sampled", "logprobs", "forced"])
def test_a_head_that_overflows_fails_the_request(kind: str, tmp_path: Path) -> None:
    saved = save_tiny_model(tmp_path)[0]
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["model.norm.weight"].fill_(3e38)
    save_file(tensors, tmp_path / "model.safetensors")
    executor = TorchExecutor.load(saved, "fp32", EngineConfig(max_active_requests=2))
    [request] = run(executor, {"only": [5, 6, 7]}, PARAMS[kind]).values()
    assert end_of(request).status == "failed"
    assert torch.isfinite(torch.tensor([token.logprob or 0.0 for token in request.output])).all()
