"""The probe and the tiers over HTTP against the bundled server: in process and over a socket, one and the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.byte_tokenizer import END, VOCABULARY, save_byte_tokenizer
from tests.engine.tiny_model import save_tiny_model
from tests.server.running import RunningServer

from quantgate.capabilities.capabilities import Capabilities
from quantgate.capabilities.probe import probe
from quantgate.quality.bundled_engine import BundledEngineModel
from quantgate.quality.openai_model import OpenAIModel
from quantgate.quality.quality_model import ChatPrompt, Continuations, ItemFailure
from quantgate.quality.repeated_baseline import RepeatedBaseline
from quantgate.quality.scores import ListedScores, Scores, WholeScores
from quantgate.targets.openai.endpoint import Endpoint
from quantgate.targets.openai.settings import EndpointSettings
from quantgate_engine import LLM

QUESTIONS = [
    Continuations(tuple(b"The sky is"), (tuple(b" blue"), tuple(b" 7"))),
    Continuations(tuple(b"Who?"), (tuple(b"me"),)),
]
OPTIONS = [option for question in QUESTIONS for option in question.options]
LISTED = 20
"""The most that our server lists. Half of a byte model's tokens, parts of characters, have no text of their own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("asked")
    save_tiny_model(root / "tiny", vocab_size=VOCABULARY, eos_token_id=END, bos_token_id=None, num_hidden_layers=2)
    save_byte_tokenizer(root / "tiny")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUANTGATE_CACHE", str(root / "cache"))
        yield root / "tiny"


def load(folder: Path) -> LLM:
    return LLM(folder, "fp32", max_active_requests=4, max_step_tokens=64, block_size=4)


@pytest.fixture(scope="module")
def in_process(folder: Path) -> BundledEngineModel:
    return BundledEngineModel(load(folder))


@pytest.fixture(scope="module")
def settings(folder: Path) -> Iterator[EndpointSettings]:
    with RunningServer(load(folder)) as server:
        yield EndpointSettings(url=server.url)


@pytest.fixture(scope="module")
def found(settings: EndpointSettings, in_process: BundledEngineModel) -> Capabilities:
    async def probed() -> Capabilities:
        async with Endpoint(settings) as endpoint:
            return await probe(endpoint, settings, in_process.tokenizer)

    return asyncio.run(probed())


def scores_of(model: Any, questions: list[Continuations] = QUESTIONS) -> list[Scores]:
    return [scores for scored in model.score(questions) if not isinstance(scored, ItemFailure) for scores in scored]


def test_the_probe_finds_all_that_the_server_gives(found: Capabilities) -> None:
    assert (found.scoring, found.tokenizer) == ("continuation_logits", "agrees")
    assert found.token_id_prompts
    assert found.forced_tokens
    assert found.token_ids_returned
    assert found.stream_usage
    assert found.metrics
    assert found.seed
    assert found.prompt_logprobs == LISTED
    assert found.weights_sha256


def test_logits_over_the_socket_are_those_of_the_process(
    settings: EndpointSettings, found: Capabilities, in_process: BundledEngineModel
) -> None:
    served = OpenAIModel(settings, found, in_process.tokenizer)
    for ask in (lambda model: model, RepeatedBaseline):
        for mine, theirs in zip(scores_of(ask(in_process)), scores_of(ask(served)), strict=True):
            assert isinstance(mine, WholeScores)
            assert isinstance(theirs, WholeScores)
            assert torch.equal(mine.logits, theirs.logits)


@pytest.mark.parametrize(
    "less",
    [
        {},
        {"prompt_logprobs": None, "echoed_logprobs": LISTED, "tokens_identified": True},
        {"prompt_logprobs": None, "generated_logprobs": LISTED, "tokens_identified": True},
    ],
    ids=["prompt_logprobs", "echo", "stepwise"],
)
def test_every_way_lists_what_the_logits_say(
    settings: EndpointSettings, found: Capabilities, in_process: BundledEngineModel, less: dict[str, Any]
) -> None:
    poorer = found.model_copy(update={"continuation_logits": False} | less)
    listed = scores_of(OpenAIModel(settings, poorer, in_process.tokenizer))
    for scores, whole, option in zip(listed, scores_of(in_process), OPTIONS, strict=True):
        assert isinstance(scores, ListedScores)
        assert isinstance(whole, WholeScores)
        expected = torch.log_softmax(whole.logits.double(), dim=-1).numpy()
        for position, token in enumerate(option):
            named = scores.token_ids[position][scores.token_ids[position] >= 0]
            assert len(named) > 0
            assert scores.logprobs[position][: len(named)] == pytest.approx(expected[position, named], abs=1e-4)
            own = scores.own[position]
            assert np.isnan(own) or own == pytest.approx(expected[position, token], abs=1e-4)


def test_answers_over_the_socket_are_those_of_the_process(
    settings: EndpointSettings, found: Capabilities, in_process: BundledEngineModel
) -> None:
    prompts = [ChatPrompt((), tuple(text)) for text in (b"One", b"Another one", b"3")]
    served = OpenAIModel(settings, found, in_process.tokenizer)
    assert served.generate(prompts, 6) == in_process.generate(prompts, 6)
