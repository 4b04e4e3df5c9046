"""What is passed to the Python interface in a wrong form is refused in one sentence, and nothing starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.async_engine import LIMIT_S, read
from tests.engine.simulation import Simulation
from tests.engine.tiny_model import TINY_SHAPE, save_tiny_model
from tests.engine.tiny_tokenizer import save_tiny_tokenizer

from quantgate_engine import LLM, AsyncLLM, SamplingParams
from quantgate_engine.errors import ConfigurationError

SHORT = SamplingParams(max_tokens=2, ignore_eos=True)


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory) -> LLM:
    path = tmp_path_factory.mktemp("tiny")
    save_tiny_model(path)
    save_tiny_tokenizer(path, TINY_SHAPE["vocab_size"])
    return LLM(path, scheme="fp32", block_size=4, num_kv_blocks=32)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_tokens": 2.5}, r"max_tokens is 2\.5; expected a whole number\."),
        ({"max_tokens": True}, "max_tokens is True; expected a whole number"),
        ({"max_tokens": "3"}, "max_tokens is '3'; expected a whole number"),
        ({"temperature": "1"}, "temperature is '1'; expected a finite number"),
        ({"temperature": float("inf")}, "temperature is inf; expected a finite number"),
        ({"temperature": 10**400}, "temperature is 1000.*; expected a finite number"),
        ({"top_k": None}, "top_k is None"),
        ({"ignore_eos": "no"}, "ignore_eos is 'no'; expected True or False"),
        ({"logprobs": 1.5}, r"logprobs is 1\.5; expected a whole number, or None"),
        ({"logprobs": True}, "logprobs is True"),
        ({"stop": (3,)}, r"stop is \(3,\); expected strings"),
        ({"stop": 3}, "stop is 3; expected strings"),
        ({"stop": ""}, r"stop is \(''.\); expected no empty string"),
        ({"stop_token_ids": 3}, "stop_token_ids is 3; expected a sequence of token ids"),
        ({"max_tokens": 2, "forced_token_ids": (1, 4.5)}, r"An entry of SamplingParams.forced_token_ids is 4\.5"),
        ({"logit_bias": {"1": 1.0}}, "logit_bias is .*; expected a map from token ids"),
        ({"logit_bias": {1.5: 1}}, "logit_bias is .*; expected a map from token ids"),
        ({"logit_bias": {1: "a"}}, "logit_bias is .*; expected a map from token ids"),
        ({"logit_bias": [3]}, r"logit_bias is \[3\]; expected a map from token ids"),
    ],
)
def test_sampling_settings_of_another_type_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SamplingParams(**settings)


def test_sequences_of_any_kind_are_taken_and_a_lone_stop_string_is_one() -> None:
    loose: dict[str, Any] = {"stop": ["a", "b"], "stop_token_ids": [np.int64(7)]}
    strict = SamplingParams(stop=("a", "b"), stop_token_ids=(7,))
    assert SamplingParams(**loose) == strict
    lone: Any = "abc"
    assert SamplingParams(stop=lone).stop == ("abc",)


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ([1, 2, 3], r"generate: prompts is \[1, 2, 3\]; expected a sequence of prompts; one prompt of token ids is"),
        (3, "generate: prompts is 3"),
        (b"abc", "generate: prompts is b'abc'"),
        ({"role": "user"}, "generate: prompts is {'role'"),
        ([None], "A prompt is a string, a list of token ids, or a list of chat messages .*; got None"),
        ([b"abc"], "A prompt is .*; got b'abc'"),
        ([[1.5]], r"A prompt is .*; got \[1\.5\]"),
        ([[True]], r"A prompt is .*; got \[True\]"),
        (["w7 \ud800"], r"A prompt has '\\ud800' at position 3, which is no character"),
        ([{7: 8}], r"A prompt is .*; got \{7: 8\}"),
        ([{"role": "user", "content": "w7"}], "A prompt is .*; got {'role': 'user'"),
        ([[{"role": "user"}]], r"A prompt is .*; got \[\{'role': 'user'\}\]"),
        ([[{"content": "w7"}]], r"A prompt is .*; got \[\{'content'"),
        ([[{"role": "user", "content": "w7"}, 7]], r"A prompt is .*; got \[\{'role'"),
        ([[]], "has an empty prompt; expected at least 1 token"),
    ],
)
def test_what_is_no_prompt_is_refused(llm: LLM, prompts: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        llm.generate(prompts, SHORT)
    assert llm.take_steps() == []


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            {"role": "foo", "content": "w7"},
            "The role of message 1 of a chat is 'foo'; expected one of system, developer, user, assistant, tool, "
            "function.",
        ),
        ({"role": None, "content": "w7"}, "The role of message 1 of a chat is None; expected one of system"),
        ({"role": ["user"], "content": "w7"}, "The role of message 1 of a chat is ['user']; expected one of system"),
        ({"role": "user", "content": None}, "The content of message 1 of a chat is None; expected a text, or a list"),
        ({"role": "user", "content": 3}, "The content of message 1 of a chat is 3; expected a text"),
        ({"role": "assistant", "content": 3}, "The content of message 1 of a chat is 3; expected a text"),
        ({"role": "user", "content": ["w7"]}, "The content of message 1 of a chat is ['w7']; expected a text, or a l"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "The content of message 1 of a chat is [{'type': 'im"),
        ({"role": "user", "content": [{"type": "text", "text": 3}]}, "The content of message 1 of a chat is [{"),
        ({"role": "user", "content": "w7 \ud800"}, "The content of message 1 of a chat has '\\ud800' at position 3"),
    ],
)
def test_a_message_with_another_role_or_no_text_is_refused_before_a_template_writes_it(
    llm: LLM, message: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        llm.generate([[{"role": "user", "content": "w7"}, message]], SHORT)
    assert str(refused.value).startswith(sentence)
    assert llm.take_steps() == []


def test_parts_of_text_are_one_text_and_an_assistants_message_may_have_none(llm: LLM) -> None:
    chat: Any = [
        {"role": "user", "content": [{"type": "text", "text": "w7"}, {"type": "text", "text": "w8"}]},
        {"role": "assistant", "tool_calls": []},
        {"role": "assistant", "content": None},
        {"role": "user", "content": ""},
    ]
    [output] = llm.generate([chat], SHORT)
    assert output.prompt_token_ids == (3, 7, 8, 3, 3, 3, 4)


@pytest.mark.parametrize("params", [{"max_tokens": 3}, [None], 3, "greedy"])
def test_what_are_no_sampling_settings_is_refused(llm: LLM, params: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"generate: params is .*; expected a value of the class Sampl"):
        llm.generate(["w7"], params)


def test_a_model_is_loaded_by_a_config_alone(tmp_path: Path) -> None:
    wrong: Any = {"block_size": 4}
    with pytest.raises(ConfigurationError, match=r"LLM: config is .*; expected a value of the class EngineConfig"):
        LLM(tmp_path, config=wrong)


def test_prompts_may_come_one_by_one(llm: LLM) -> None:
    listed = llm.generate(["w7", [7, 8]], SHORT)
    prompts: list[Any] = ["w7", np.array([7, 8])]
    drawn = llm.generate(iter(prompts), iter([SHORT, SHORT]))
    assert [output.token_ids for output in drawn] == [output.token_ids for output in listed]
    assert llm.generate([]) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda llm: llm.logits([1, 300]), "An entry of logits: token_ids is 300; .* from 0 to 256"),
        (lambda llm: llm.logits([1, -1]), "An entry of logits: token_ids is -1"),
        (lambda llm: llm.logits([1.5, 2]), r"An entry of logits: token_ids is 1\.5"),
        (lambda llm: llm.logits("ab"), "logits: token_ids is 'ab'"),
        (lambda llm: llm.logits([]), r"logits\(\) got 0 tokens"),
        (
            lambda llm: llm.logits([1, 2], -1),
            "logits: chunk_tokens is -1; expected a whole number of at least 1, or No",
        ),
        (lambda llm: llm.logits([1, 2], 0), "logits: chunk_tokens is 0"),
        (lambda llm: llm.token_scores([1, 300]), "An entry of token_scores: token_ids is 300"),
        (lambda llm: llm.token_scores([1, 2], -1), "token_scores: alternatives is -1"),
        (lambda llm: llm.continuation_logits([1], [[300]]), "An entry of continuation_logits: a continuation is 300"),
        (lambda llm: llm.continuation_logits([1], [[-3, 1]]), "An entry of continuation_logits: a continuation is -3"),
        (lambda llm: llm.continuation_logits([1], [3]), "continuation_logits: a continuation is 3"),
        (lambda llm: llm.continuation_logits([1], 3), "continuation_logits: continuations is 3"),
        (lambda llm: llm.continuation_logits([1], [[2]], -1), "continuation_logits: chunk_tokens is -1"),
        (lambda llm: llm.continuation_logits(range(200), [[2]]), r"continuation_logits\(\) got 200 tokens"),
    ],
)
def test_tokens_that_a_model_cannot_be_asked_about_are_refused(
    llm: LLM, call: Callable[[LLM], object], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        call(llm)


def test_tokens_may_be_a_tensor(llm: LLM) -> None:
    ids: Any = torch.tensor([5, 6, 7])
    assert torch.equal(llm.logits(ids), llm.logits([5, 6, 7]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((3,), "AsyncLLM: llm is 3"), ((Simulation().core, -1), "AsyncLLM: max_unread_chunks is -1")],
)
def test_a_stream_needs_an_engine(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        AsyncLLM(*arguments)


def test_a_malformed_stream_is_refused_and_its_neighbours_go_on() -> None:
    async def scenario() -> None:
        llm = AsyncLLM(Simulation().core)
        await llm.start()
        beside = asyncio.create_task(read(llm, "beside", 5, 20))
        wrong: list[tuple[Any, Any]] = [("x", ("a",)), ("x", "abc"), ("x", None), ([], [1]), ("x", [True])]
        for request_id, token_ids in wrong:
            with pytest.raises(ConfigurationError, match=r"^(An entry of )?stream: "):
                await anext(llm.stream(request_id, token_ids, SHORT))
        assert sum(len(chunk.token_ids) for chunk in await beside) == 20
        await llm.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


def test_an_id_is_free_as_soon_as_its_last_chunk_has_come() -> None:
    async def scenario() -> None:
        llm = AsyncLLM(Simulation().core)
        await llm.start()
        streams = []
        for _ in range(3):
            stream = llm.stream("the same", (1, 2, 3), SHORT)
            streams.append(stream)
            while (await anext(stream)).end is None:
                pass
        last = llm.stream("the same", (1, 2, 3), SHORT)
        await anext(last)
        for stream in streams:
            await stream.aclose()
        # Closing those that had ended has taken nothing from the one that runs.
        assert (await anext(last)).end is not None
        await last.aclose()
        await llm.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
