"""The quality tiers' questions to a server, against the table that its answers follow from."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
import torch
from tests.quality.fake_server import (
    SETTINGS,
    FakeServer,
    LenientTokenizer,
    like_llama_cpp,
    like_sglang,
    like_vllm,
    model_on,
    ours,
    status,
)
from tests.quality.table_model import TableModel, chat, random_table

from quantgate.capabilities.capabilities import Capabilities
from quantgate.capabilities.probe import probe
from quantgate.quality.openai_model import OpenAIModel
from quantgate.quality.quality_model import ChatPrompt, Continuations, GeneratedAnswer, ItemFailure
from quantgate.quality.repeated_baseline import RepeatedBaseline
from quantgate.quality.scores import ListedScores, Scores, WholeScores, reduced
from quantgate.targets.openai.errors import EndpointError
from quantgate.traces.record import Message

QUESTIONS = [
    Continuations((3, 1, 4), ((1, 5, 9, 2), (6,), (5, 3))),
    Continuations((2, 7), ((1, 8),)),
]
TABLE = random_table(1)


def model_of(server: FakeServer, **settings: Any) -> OpenAIModel:
    capabilities = asyncio.run(probe(server, SETTINGS, LenientTokenizer()))
    server.requests.clear()
    server.most_in_flight = 0
    return model_on(server, capabilities, **settings)


def in_process() -> list[Any]:
    return TableModel(TABLE).score(QUESTIONS)


def flat(scored: list[list[Scores] | ItemFailure]) -> list[Scores]:
    return [scores for one in scored if not isinstance(one, ItemFailure) for scores in one]


def test_whole_logits_are_those_of_the_process_bit_for_bit() -> None:
    found = flat(model_of(ours()).score(QUESTIONS))
    for scores, expected in zip(found, flat(in_process()), strict=True):
        assert isinstance(scores, WholeScores)
        assert isinstance(expected, WholeScores)
        assert torch.equal(scores.logits, expected.logits)


@pytest.mark.parametrize("server", [like_vllm, like_sglang, like_llama_cpp])
@pytest.mark.parametrize("alternatives", [20, 3])
def test_listed_log_probs_are_those_of_the_whole_distribution(server: Any, alternatives: int) -> None:
    found = flat(model_of(server(), alternatives=alternatives).score(QUESTIONS))
    options = [option for question in QUESTIONS for option in question.options]
    for scores, whole, option in zip(found, flat(in_process()), options, strict=True):
        expected = reduced(whole, option, alternatives)
        assert isinstance(scores, ListedScores)
        assert isinstance(expected, ListedScores)
        assert scores.token_ids.tolist() == expected.token_ids.tolist()
        assert scores.logprobs == pytest.approx(expected.logprobs, abs=1e-12)
        assert scores.own == pytest.approx(expected.own, abs=1e-12)


def test_a_step_asks_farther_only_where_the_token_is_not_among_the_likeliest() -> None:
    table = torch.zeros(96, 96)
    table[4, 1], table[1, 5] = 9.0, -9.0  # after 4 token 1 is likeliest, after 1 token 5 is the last
    server = like_llama_cpp(table=table)
    [[scores]] = model_of(server, alternatives=5).score([Continuations((4,), ((1, 5),))])
    assert [body["logprobs"] for _, body in server.requests] == [5, 5, 96]
    assert not np.isnan(scores.own).any()


def test_a_token_beyond_the_servers_limit_is_censored() -> None:
    table = torch.zeros(96, 96)
    table[4, 90] = -1.0
    [[scores]] = model_of(like_llama_cpp(table=table, cap=7)).score([Continuations((4,), ((90, 0),))])
    assert np.isnan(scores.own).tolist() == [True, False]
    assert scores.censored == 1


def test_a_step_that_lists_nothing_is_a_position_without_tokens() -> None:
    """llama.cpp lists nothing for a token that is a part of a character."""

    class Silent(FakeServer):
        def _listed(self, *arguments: Any) -> dict[str, Any]:
            return {"content": []} if arguments[0] == [1] else super()._listed(*arguments)

    server = Silent(**vars(like_llama_cpp()))
    [[scores]] = model_of(server).score([Continuations((4,), ((1, 5),))])
    assert (scores.token_ids[1] == -1).all()
    assert np.isnan(scores.own).tolist() == [False, True]


def test_answers_to_token_ids_are_decoded_here() -> None:
    server = ours(answers={"Who": "a dog", "Why": "because of it"})
    found = model_of(server).generate([chat("Why?"), chat("Who?"), chat("Nothing")], max_tokens=6)
    assert found == [
        GeneratedAnswer("becaus", 6, truncated=True),
        GeneratedAnswer("a dog", 5, truncated=False),
        GeneratedAnswer("", 0, truncated=False),
    ]
    assert all(body["temperature"] == 0 and body["return_token_ids"] for _, body in server.requests)


def test_answers_of_a_server_that_returns_no_ids_are_its_own_text() -> None:
    found = model_of(like_sglang(answers={"Who": "a dog"})).generate([chat("Who?")], max_tokens=8)
    assert found == [GeneratedAnswer("a dog", 5, truncated=False)]


def test_messages_go_under_the_servers_own_template() -> None:
    server = FakeServer(token_ids=False, answers={"Who": "a cat"})
    model = OpenAIModel(
        SETTINGS.model_copy(update={"chat_template_kwargs": {"enable_thinking": False}}),
        Capabilities(model="fake", models=["fake"], chat=True),
        None,
        connect=lambda _: server,
    )
    assert model.generate([ChatPrompt((Message("user", "Who?"),))], 8) == [GeneratedAnswer("a cat", 5, truncated=False)]
    [(path, body)] = server.requests
    assert path == "/v1/chat/completions"
    assert body["messages"] == [{"role": "user", "content": "Who?"}]
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_requests_in_flight_are_bounded() -> None:
    server = like_vllm()
    model = model_of(server, concurrency=3)
    model.score(QUESTIONS * 4)
    assert server.most_in_flight == 3
    server.most_in_flight = 0
    model.generate([chat("x")] * 9, 2)
    assert server.most_in_flight == 3


def test_the_repeated_baseline_asks_in_another_order_and_company() -> None:
    server = like_vllm()
    model = model_of(server, concurrency=4)
    first = flat(model.score(QUESTIONS))
    asked = [tuple(body["prompt"]) for _, body in server.requests]
    server.requests.clear()
    server.most_in_flight = 0
    again = flat(RepeatedBaseline(model).score(QUESTIONS))
    assert [tuple(body["prompt"]) for _, body in server.requests] != asked
    assert server.most_in_flight == 2
    for scores, repeated in zip(first, again, strict=True):
        assert isinstance(scores, ListedScores)
        assert isinstance(repeated, ListedScores)
        assert scores.own.tolist() == repeated.own.tolist()


def test_our_server_is_told_the_prefill_chunk() -> None:
    server = ours()
    RepeatedBaseline(model_of(server), chunk_tokens=16).score(QUESTIONS)
    assert {body["chunk_tokens"] for _, body in server.requests} == {16}


def test_an_item_that_fails_is_told_without_what_the_server_said() -> None:
    def refuse(path: str, body: Any) -> EndpointError | None:
        return status(500) if isinstance(body, dict) and body.get("prompt") == [2, 7, 1, 8] else None

    found = model_of(like_vllm(refuse=refuse)).score(QUESTIONS)
    assert found[1] == ItemFailure("the request failed (status_5xx, status 500)")
    assert not isinstance(found[0], ItemFailure)


def test_an_answer_of_another_shape_is_a_failed_item() -> None:
    server = like_vllm()
    model = model_of(server)
    server.prompt_logprobs = None
    [failure, _] = model.score(QUESTIONS)
    assert isinstance(failure, ItemFailure)
    assert failure.reason.startswith("the server's answer could not be read: prompt_logprobs has not one entry")
    server.chat = False
    ours_too = ours()
    model = model_of(ours_too)
    ours_too.table = random_table(1)[:, :5]
    assert not isinstance(model.score(QUESTIONS)[0], ItemFailure)


@pytest.mark.parametrize("error", [status(401), EndpointError("nothing listens there.", "connect")])
def test_a_server_that_is_gone_ends_the_arm(error: EndpointError) -> None:
    server = like_vllm()
    model = model_of(server)
    server.refuse = lambda path, body: error
    with pytest.raises(EndpointError) as raised:
        model.score(QUESTIONS)
    assert raised.value is error


def test_without_a_tokenizer_an_arm_supports_answers_alone() -> None:
    capabilities = asyncio.run(probe(ours(), SETTINGS, LenientTokenizer()))
    support = OpenAIModel(SETTINGS, capabilities, None).support
    assert support.distribution.reason == support.likelihood.reason == "no tokenizer given"
    assert support.answers.status == "partial"
    exact = OpenAIModel(SETTINGS, capabilities, LenientTokenizer()).support
    assert (exact.distribution.status, exact.alternatives) == ("exact", None)


def test_no_more_requests_are_in_flight_than_the_server_has_slots() -> None:
    server = like_llama_cpp()
    model = model_of(server, concurrency=8)
    model.score(QUESTIONS * 4)
    assert (model.concurrency, server.most_in_flight) == (2, 2)


def test_a_step_that_drew_a_part_of_a_character_is_drawn_again() -> None:
    class Unlucky(FakeServer):
        def _completion(self, body: Any) -> bytes:
            if body["prompt"] == [4, 1] and body["seed"] == 0:
                return b'{"choices": [{"text": "", "logprobs": null}]}'
            return super()._completion(body)

    server = Unlucky(**vars(like_llama_cpp()))
    [[scores]] = model_of(server, alternatives=96).score([Continuations((4,), ((1, 5),))])
    assert not np.isnan(scores.own).any()
    assert [(len(body["prompt"]), body["seed"]) for _, body in server.requests] == [(1, 0), (2, 0), (2, 1)]


def test_the_whole_vocabulary_is_asked_for_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quantgate.quality.over_http.stepwise_logprobs._MANY", 50)
    table = torch.arange(96.0).flip(0).repeat(96, 1) / 10  # the likelier, the smaller the id
    server = like_llama_cpp(table=table)
    [[scores]] = model_of(server, alternatives=5).score([Continuations((4,), ((3, 40, 90),))])
    assert [body["logprobs"] for _, body in server.requests] == [5, 5, 50, 5, 50, 96]
    assert not np.isnan(scores.own).any()


def test_what_is_compared_is_told_and_not_what_could_be() -> None:
    support = model_of(like_llama_cpp()).support
    assert support.distribution.reason.startswith("only the 20 likeliest tokens of a position are compared")
    assert support.alternatives == 20
