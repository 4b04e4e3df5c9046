"""The tiers on the bundled engine and the real model: noise, damage and knowledge are told apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from quantgate.quality.bundled_engine import BundledEngineModel
from quantgate.quality.config import QualityConfig, TaskConfig
from quantgate.quality.distribution import AnswerSequence
from quantgate.quality.evaluate import evaluate
from quantgate.quality.quality_model import ChatPrompt, Continuations, GeneratedAnswer, QualityModel
from quantgate.quality.repeated_baseline import RepeatedBaseline
from quantgate.quality.rows import QualityRow
from quantgate.quality.scores import WholeScores
from quantgate.resources import bundled_root
from quantgate_engine import LLM, SamplingParams

pytestmark = pytest.mark.model

PROMPTS = ("The three primary colours are red, blue and", "def add(a, b):")


@pytest.fixture(scope="module")
def rows() -> list[QualityRow]:
    llm = LLM("smollm2-135m-instruct", scheme="fp16", threads=1, num_kv_blocks=256)
    baseline = BundledEngineModel(llm)
    candidate = BundledEngineModel(LLM("smollm2-135m-instruct", scheme="int4-g64", threads=1, num_kv_blocks=256))
    prompts = [baseline.tokenizer.encode(text, add_special_tokens=False) for text in PROMPTS]
    sequences = [
        AnswerSequence(f"r-{number}", f"r-{number}", tuple(prompt), tuple(output))
        for number, (prompt, output) in enumerate(zip(prompts, _answers(llm, prompts, 8), strict=True))
    ]
    arms: dict[str, QualityModel] = {
        "fp16": baseline,
        "fp16-aa": RepeatedBaseline(baseline, chunk_tokens=5),
        "int4-g64": candidate,
    }
    config = QualityConfig(tasks={"code": TaskConfig(limit=1)})
    tasks = config.load_tasks(bundled_root() / "suites" / "tasks")
    return list(itertools.chain.from_iterable(evaluate(arms, "fp16", sequences=sequences, tasks=tasks)))


def _answers(llm: LLM, prompts: list[list[int]], max_tokens: int) -> list[list[int]]:
    outputs = llm.generate(prompts, SamplingParams(max_tokens=max_tokens, ignore_eos=True))
    return [list(output.token_ids) for output in outputs]


def _mean(rows: list[QualityRow], arm_id: str, metric: str, task: str) -> float:
    return float(np.mean([row.value for row in rows if (row.arm_id, row.metric, row.task) == (arm_id, metric, task)]))


def test_int4_lies_farther_from_the_baseline_than_its_own_noise(rows: list[QualityRow]) -> None:
    noise, damage = (_mean(rows, arm, "kl", "replay") for arm in ("fp16-aa", "int4-g64"))
    assert noise < 0.01 < damage < 2.0
    assert _mean(rows, "fp16-aa", "top1_agreement", "replay") >= 0.9


def test_the_model_knows_code_better_than_chance(rows: list[QualityRow]) -> None:
    assert _mean(rows, "fp16", "gold_preferred", "code") == 1.0
    assert _mean(rows, "fp16", "gold_margin", "code") > 0.1


def test_the_adapter_generates_what_its_logits_say() -> None:
    """In float32: at 16 bits, steps of one row and of many may round a near tie to either side."""
    llm = LLM("smollm2-135m-instruct", scheme="fp32", threads=1, num_kv_blocks=256)
    model = BundledEngineModel(llm)
    prompt = model.tokenizer.encode(PROMPTS[0], add_special_tokens=False)
    (output,) = _answers(llm, [prompt], 6)
    [[scores]] = model.score([Continuations(tuple(prompt), (tuple(output),))])
    assert isinstance(scores, WholeScores)
    assert torch.argmax(scores.logits, dim=-1).tolist() == output
    [answer] = model.generate([ChatPrompt((), tuple(prompt))], 6)
    assert answer == GeneratedAnswer(llm.tokenizer.decode(output), 6, truncated=True)
