"""Deterministic mode: the same tokens and log-probabilities, bit for bit, however the engine comes to compute them."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from tests.engine.deterministic_arm import OUTPUT_TOKENS, Arm, answers, draw_prompts, params_of
from tests.engine.tiny_model import TINY_SHAPE, save_tiny_model

from quantgate_engine.clock import MonotonicClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.engine_totals import EngineTotals
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.base import SampledToken
from quantgate_engine.executor.token_scores import score_rows
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling.sampler import SamplingRow, sample
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings
from quantgate_kernels.registry import DETERMINISTIC_SETS

ARMS = (
    Arm("cpu", "bf16", num_prompts=50),
    Arm("cpu", "fp32"),
    Arm("cpu", "int8-w8a16"),
    Arm("cpu", "int8-w8a8"),
    Arm("cpu", "int4-g64"),
    Arm("cpu", "bf16", kv_dtype="int8"),
    Arm("cpu", "bnb-int8", num_prompts=6),
    Arm("cpu", "bnb-nf4", num_prompts=6),
    Arm("reference", "bf16", num_prompts=6),
    Arm("reference", "fp32", num_prompts=6),
    Arm("reference", "int8-w8a8", num_prompts=6),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    return save_tiny_model(tmp_path_factory.mktemp("model"))[0]


@pytest.fixture(params=ARMS, ids=lambda arm: f"{arm.kernel_set}, {arm.scheme}, kv {arm.kv_dtype}")
def arm(request: pytest.FixtureRequest) -> Arm:
    return request.param


SCENARIOS: dict[str, dict[str, Any]] = {
    "together": {},
    "in small chunks": {"max_step_tokens": 17},
    "with cache hits": {"cache": CacheSettings(prefix_sharing=True), "max_step_tokens": 64},
    "preempted and computed again": {
        "num_kv_blocks": 30,
        "admission": AdmissionSettings(estimator="optimistic"),
    },
    "swapped out and in": {
        "num_kv_blocks": 30,
        "admission": AdmissionSettings(estimator="optimistic"),
        "preemption": PreemptionSettings(mode="swap", host_blocks=200),
        "cache": CacheSettings(prefix_sharing=True),
    },
}


def test_answers_are_those_that_each_prompt_gets_alone(arm: Arm, folder: ModelFolder) -> None:
    """Fifty prompts on the cpu set, fewer on the others: alone, and five times in random order under each scenario."""
    prompts = draw_prompts(arm.num_prompts, longest=60, vocabulary=TINY_SHAPE["vocab_size"])
    config = arm.config()
    alone, _ = answers(arm.executor(folder), config, prompts, range(len(prompts)), together=False)
    totals = EngineTotals()
    for name, settings in SCENARIOS.items():
        config, executor = arm.config(**settings), arm.executor(folder, **settings)
        for repeat in range(5 if name == "together" else 1):
            order = random.Random(repeat).sample(range(len(prompts)), len(prompts))
            given, totals = answers(executor, config, prompts, order)
            assert given == alone, f"{name}, repeat {repeat}"
        if "cache" in settings:
            assert totals.cached_prompt_tokens > 0
        if "admission" in settings:
            assert totals.preemption_count > 0


def test_threads_change_nothing(arm: Arm, folder: ModelFolder) -> None:
    prompts = draw_prompts(1, longest=60, vocabulary=TINY_SHAPE["vocab_size"])
    executor, config = arm.executor(folder), arm.config()
    one, _ = answers(executor, config, prompts, range(1))
    torch.set_num_threads(2)
    try:
        two, _ = answers(executor, config, prompts, range(1))
    finally:
        torch.set_num_threads(1)
    assert two == one


def test_given_tokens_have_the_log_probabilities_that_decoding_gave_them(arm: Arm, folder: ModelFolder) -> None:
    """Forced token by token, scored in chunks, and as continuations side by side."""
    prompt = draw_prompts(1, longest=60, vocabulary=TINY_SHAPE["vocab_size"])[0]
    executor, config = arm.executor(folder, max_step_tokens=24), arm.config(max_step_tokens=24)
    core = EngineCore(executor, config, MonotonicClock())

    def decode(**changes: Any) -> list[SampledToken]:
        request = core.add_request("r", prompt, SamplingParams(max_tokens=OUTPUT_TOKENS, logprobs=0, **changes))
        while core.has_work:
            core.step()
        return list(request.output)

    drawn = decode(temperature=1.0, seed=3, ignore_eos=True)
    tokens = tuple(token.token_id for token in drawn)
    logprobs = [token.logprob for token in drawn]
    assert [token.logprob for token in decode(forced_token_ids=tokens)] == logprobs
    scores = executor.token_scores([*prompt, *tokens], alternatives=0)
    assert [score.logprob for score in scores[-OUTPUT_TOKENS:]] == logprobs
    for chunk_tokens in (None, 7):
        own, _ = executor.continuation_logits(prompt, [tokens, (5, 6)], chunk_tokens)
        rows = own.log_softmax(-1)
        assert [float(row[token]) for row, token in zip(rows, tokens, strict=True)] == logprobs


@pytest.mark.parametrize("vocabulary", [257, 32_001])
def test_tokens_and_probabilities_of_a_row_are_its_own(vocabulary: int) -> None:
    """What comes after the kernels has no deterministic variant: it computes rows alone always."""
    logits = torch.randn(7, vocabulary, generator=torch.Generator().manual_seed(1)) * 5
    rows = [SamplingRow(params_of(index), position=index) for index in range(7)]
    scores = score_rows(logits, range(7), alternatives=3)
    alone = [sample(logits[index : index + 1].clone(), [rows[index]])[0] for index in range(7)]
    torch.set_num_threads(2)
    try:
        together = sample(logits, rows)
    finally:
        torch.set_num_threads(1)
    assert together == alone
    forced = [SamplingRow(SamplingParams(max_tokens=1, logprobs=3), 0, forced_token_id=index) for index in range(7)]
    for token, score in zip(sample(logits, forced), scores, strict=True):
        assert (token.logprob, token.top_logprobs) == (score.logprob, score.top_logprobs)


def test_forks_answer_as_requests_of_their_own(arm: Arm, folder: ModelFolder) -> None:
    prompt = draw_prompts(1, longest=50, vocabulary=TINY_SHAPE["vocab_size"])[0]
    executor, config = arm.executor(folder), arm.config()
    params = [
        SamplingParams(max_tokens=9, temperature=1.0, seed=seed, ignore_eos=True, logprobs=0) for seed in range(3)
    ]
    core = EngineCore(executor, config, MonotonicClock())
    forks = [core.add_request("0", prompt, params[0])]
    forks += [core.add_request(str(seed), prompt, params[seed], RequestTerms(fork_of="0")) for seed in (1, 2)]
    while core.has_work:
        core.step()
    assert core.totals.prefill_tokens < 2 * len(prompt)
    for fork, own in zip(forks, params, strict=True):
        alone = EngineCore(executor, config, MonotonicClock())
        request = alone.add_request("alone", prompt, own)
        while alone.has_work:
            alone.step()
        assert fork.output == request.output


def test_thirty_two_requests_share_a_prefix_of_400_tokens_and_answer_as_without_sharing(folder: ModelFolder) -> None:
    arm = Arm("cpu", "bf16")
    drawn = random.Random(1)
    prefix = tuple(drawn.randrange(3, 257) for _ in range(400))
    prompts = [prefix + tuple(drawn.randrange(3, 257) for _ in range(10)) for _ in range(32)]
    outputs, computed, cached = {}, {}, {}
    for sharing in (False, True):
        settings = {"max_active_requests": 32, "block_size": 16, "cache": CacheSettings(prefix_sharing=sharing)}
        config = arm.config(**settings, num_kv_blocks=1024)
        executor = arm.executor(folder, **settings, num_kv_blocks=1024)
        outputs[sharing], totals = answers(executor, config, prompts, range(32))
        computed[sharing], cached[sharing] = totals.prefill_tokens, totals.cached_prompt_tokens
    assert (computed[False], cached[False]) == (32 * 410, 0)
    assert (computed[True], cached[True]) == (400 + 32 * 10, 31 * 400)
    assert outputs[True] == outputs[False]


def test_the_mode_is_recorded_and_near_the_ordinary_kernels(arm: Arm, folder: ModelFolder) -> None:
    tokens = draw_prompts(1, longest=60, vocabulary=TINY_SHAPE["vocab_size"])[0]
    executor = arm.executor(folder)
    assert executor.info.kernel_set == f"{arm.kernel_set}-deterministic"
    assert executor.info.kernel_set in executor.cache_identity
    ordinary = TorchExecutor.load(
        folder, arm.scheme, EngineConfig(kernel_set=arm.kernel_set, kv_dtype=arm.kv_dtype, block_size=4)
    )
    assert ordinary.info.kernel_set == arm.kernel_set
    fixed, usual = (each.logits(tokens).log_softmax(-1) for each in (executor, ordinary))
    divergence = (usual.exp() * (usual - fixed)).sum(-1).mean()
    assert float(divergence) < (1e-7 if arm.scheme == "fp32" else 2e-2)


def test_a_kernel_set_without_the_mode_is_refused_in_one_sentence(
    folder: ModelFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(DETERMINISTIC_SETS, "reference")
    with pytest.raises(ConfigurationError, match=r"cannot run here: `reference` has no deterministic variant; choose"):
        TorchExecutor.load(folder, "fp32", EngineConfig(kernel_set="reference", deterministic=True))


@pytest.mark.model
@pytest.mark.parametrize("scheme", ["fp16", "int4-g64"])
def test_the_bundled_model(scheme: str) -> None:
    arm, folder = Arm("cpu", scheme), resolve_model("smollm2-135m-instruct")
    prompts = draw_prompts(5, longest=36, vocabulary=49_000)
    executor, config = arm.executor(folder), arm.config()
    alone, _ = answers(executor, config, prompts, range(5), together=False)
    settings = {"cache": CacheSettings(prefix_sharing=True), "max_step_tokens": 19}
    for _ in range(2):
        together, totals = answers(arm.executor(folder, **settings), arm.config(**settings), prompts, [3, 0, 4, 1, 2])
        assert totals.cached_prompt_tokens > 0
        assert together == alone
