"""Penalties and biases: the formulas against transformers and by hand, and whole generations against transformers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.against_transformers import expected_logits, random_tokens
from tests.engine.tiny_model import save_tiny_model
from torch import Tensor
from transformers import RepetitionPenaltyLogitsProcessor, SequenceBiasLogitsProcessor

from quantgate_engine.clock import VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.base import SampledToken
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.request import Request
from quantgate_engine.sampling.adjustments import adjust_
from quantgate_engine.sampling.sampler import SamplingRow, sample
from quantgate_engine.sampling.token_history import TokenHistory
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.settings import AdmissionSettings

VOCABULARY = 50
PROMPT, OUTPUT = (3, 4, 4, 9), (9, 7, 7, 7)
LOGITS = torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(0)) * 3


def history(prompt: tuple[int, ...] = PROMPT, output: tuple[int, ...] = OUTPUT) -> TokenHistory:
    request = Request("a", prompt, SamplingParams(), arrived_ns=0)
    request.output.extend(map(SampledToken, output))
    return TokenHistory(request)


def adjusted(**settings: Any) -> Tensor:
    logits = LOGITS.clone()
    adjust_(logits, SamplingParams(**settings), history())
    return logits


@pytest.mark.parametrize("penalty", [0.5, 1.0, 1.3, 5.0])
def test_repetition_penalty_is_that_of_transformers(penalty: float) -> None:
    expected = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([PROMPT + OUTPUT]), LOGITS.clone().unsqueeze(0))
    assert torch.equal(adjusted(repetition_penalty=penalty), expected[0])


def test_a_bias_is_added_before_the_repetition_penalty_as_in_transformers() -> None:
    bias = {0: 1.5, 9: -4.0, 49: 100.0}
    tokens = torch.tensor([PROMPT + OUTPUT])
    expected = SequenceBiasLogitsProcessor([[[token], amount] for token, amount in bias.items()])(
        tokens, LOGITS.clone().unsqueeze(0)
    )
    assert torch.equal(adjusted(logit_bias=bias), expected[0])
    both = RepetitionPenaltyLogitsProcessor(1.7)(tokens, expected)
    assert torch.equal(adjusted(logit_bias=bias, repetition_penalty=1.7), both[0])


@pytest.mark.parametrize(("presence", "frequency"), [(0.5, 0.0), (0.0, 0.25), (-1.0, 2.0)])
def test_presence_and_frequency_count_the_output_alone(presence: float, frequency: float) -> None:
    """mu[j] - c[j] * frequency - (c[j] > 0) * presence, with c[j] how often token j was drawn."""
    expected = LOGITS.clone()
    for token, count in {9: 1, 7: 3}.items():
        expected[token] -= count * frequency + presence
    found = adjusted(presence_penalty=presence, frequency_penalty=frequency)
    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-6)
    assert [token for token in range(VOCABULARY) if found[token] != LOGITS[token]] == [7, 9]


def test_before_the_first_token_there_is_nothing_to_count() -> None:
    logits = LOGITS.clone()
    adjust_(logits, SamplingParams(presence_penalty=1.0, frequency_penalty=1.0), history(output=()))
    assert torch.equal(logits, LOGITS)


def test_a_row_is_changed_for_itself_alone_and_told_about_as_the_model_sees_it() -> None:
    best = int(LOGITS.argmax())
    plain = SamplingRow(SamplingParams(logprobs=1), 8)
    banned = SamplingRow(SamplingParams(logprobs=1, logit_bias={best: -100.0}), 8)
    forced = SamplingRow(SamplingParams(logprobs=1, logit_bias={best: -100.0}), 8, forced_token_id=best)
    first, second, third = sample(LOGITS.expand(3, -1), [plain, banned, forced])
    assert first.token_id == third.token_id == best
    assert second.token_id == int(LOGITS.topk(2).indices[1])
    own = LOGITS.log_softmax(0)
    assert second.logprob == pytest.approx(float(own[second.token_id]), abs=1e-5)
    assert second.top_logprobs == first.top_logprobs


def test_draws_follow_the_changed_distribution() -> None:
    favoured = SamplingParams(temperature=1.0, logit_bias={5: 100.0})
    rows = [SamplingRow(favoured, position) for position in range(50)]
    assert {token.token_id for token in sample(LOGITS.expand(50, -1), rows)} == {5}


@pytest.mark.parametrize("penalty", [1e-6, 1e6])
@pytest.mark.parametrize("scale", [1.0, 1e32])
def test_the_strongest_penalties_keep_draws_among_the_best(penalty: float, scale: float) -> None:
    """With every token seen before, the penalty only spreads or narrows the logits: no infinity, no NaN."""
    seen = history(prompt=tuple(range(VOCABULARY)), output=())
    expected = LOGITS * scale
    adjust_(expected, SamplingParams(repetition_penalty=penalty), seen)
    assert expected.isfinite().all()
    row = SamplingRow(SamplingParams(temperature=1e-30, repetition_penalty=penalty), 3, history=seen)
    [drawn] = sample((LOGITS * scale).unsqueeze(0), [row])
    assert expected[drawn.token_id] == expected.max()


def generate(executor: TorchExecutor, config: EngineConfig, prompts: list[list[int]], params: SamplingParams) -> Any:
    """-> (tokens of each prompt, preemptions)"""
    core = EngineCore(executor, config, VirtualClock())
    ended: list[Request] = []
    for index, prompt in enumerate(prompts):
        core.add_request(str(index), tuple(prompt), params)
    for _ in range(1000):
        ended.extend(core.step().ended)
        core.check_integrity()
        if len(ended) == len(prompts):
            break
    ended.sort(key=lambda request: int(request.request_id))
    return [list(request.output_token_ids) for request in ended], sum(request.preemptions for request in ended)


def by_hand(model: Any, prompt: list[int], params: SamplingParams) -> list[int]:
    """Greedy decoding from transformers' logits, each step adjusted from scratch."""
    drawn: list[int] = []
    for _ in range(params.max_tokens):
        logits = expected_logits(model, prompt + drawn)[-1]
        adjust_(logits, params, history(tuple(prompt), tuple(drawn)))
        drawn.append(int(logits.argmax()))
    return drawn


def test_whole_generations_are_those_of_transformers(tmp_path: Path) -> None:
    folder, model = save_tiny_model(tmp_path)
    config = EngineConfig(num_kv_blocks=24, max_active_requests=4, max_step_tokens=16)
    executor = TorchExecutor.load(folder, "fp32", config)
    prompts = [random_tokens(count, seed=count) for count in (20, 33)]
    settings = SamplingParams(max_tokens=30, ignore_eos=True, repetition_penalty=1.3, logit_bias={5: 2.0})
    found, _ = generate(executor, config, prompts, settings)
    for prompt, tokens in zip(prompts, found, strict=True):
        theirs = model.generate(
            torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)), max_new_tokens=30, do_sample=False,
            repetition_penalty=1.3, sequence_bias=[[[5], 2.0]], eos_token_id=None, pad_token_id=0,
        )  # fmt: skip
        assert tokens == theirs[0, len(prompt) :].tolist()
    plain, _ = generate(executor, config, prompts, SamplingParams(max_tokens=30, ignore_eos=True))
    assert plain != found


def test_penalties_outlive_a_preemption(tmp_path: Path) -> None:
    folder, model = save_tiny_model(tmp_path)
    config = EngineConfig(
        num_kv_blocks=7, max_active_requests=4, max_step_tokens=16, admission=AdmissionSettings(estimator="optimistic")
    )
    executor = TorchExecutor.load(folder, "fp32", config)
    prompts = [random_tokens(20, seed=seed) for seed in (1, 2, 3)]
    params = SamplingParams(max_tokens=24, ignore_eos=True, frequency_penalty=1.5, presence_penalty=0.5)
    found, preemptions = generate(executor, config, prompts, params)
    assert preemptions > 0
    assert found == [by_hand(model, prompt, params) for prompt in prompts]


def test_a_changed_choice_is_made_from_exact_logits(tmp_path: Path) -> None:
    """In 16 bits the cheap head is exact for its best candidates only, and a penalty can make any token the best."""
    folder, _ = save_tiny_model(tmp_path)
    config = EngineConfig(num_kv_blocks=24, kernel_set="reference")
    executor = TorchExecutor.load(folder, "bf16", config)
    generate(executor, config, [[5, 6, 7]], SamplingParams(max_tokens=2, logit_bias={5: 1.0}))
    assert "head" in executor.info.kernel_paths
    assert "head.rows<=32" not in executor.info.kernel_paths
    generate(executor, config, [[5, 6, 7]], SamplingParams(max_tokens=2))
    assert "head.rows<=32" in executor.info.kernel_paths


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"repetition_penalty": 0.0}, r"repetition_penalty is 0.0; expected 1e-06 to 1e\+06 \(1: off\)"),
        ({"repetition_penalty": math.inf}, "repetition_penalty is inf"),
        ({"repetition_penalty": math.nan}, "repetition_penalty is nan"),
        ({"presence_penalty": 2.5}, r"presence_penalty is 2.5; expected -2 to 2 \(0: off\)"),
        ({"frequency_penalty": math.nan}, "frequency_penalty is nan"),
        ({"logit_bias": {3: -101.0}}, "logit_bias is .*expected a map from token id to a number from -100 to 100"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SamplingParams(**settings)


@pytest.mark.parametrize("token_id", [-1, 257])
def test_a_bias_of_a_token_that_the_model_does_not_have_is_refused(token_id: int, tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    config = EngineConfig(num_kv_blocks=8)
    core = EngineCore(TorchExecutor.load(folder, "fp32", config), config, VirtualClock())
    refusal = core.refusal("a", (5, 6), SamplingParams(logit_bias={token_id: 1.0}))
    assert refusal is not None
    assert f"{token_id}" in refusal
    assert "expected 0 to 256, the model's vocabulary" in refusal
