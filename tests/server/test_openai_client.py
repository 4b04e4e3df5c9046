"""The official client against a running server: completions, streams, log-probabilities, choices, models."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from tests.engine.byte_tokenizer import END
from tests.server.requests import GREEDY, TEXT, forced, greedy_tokens, ids_of
from tests.server.running import STARTED_S, RunningServer


def test_a_completion_is_what_the_engine_gives(server: RunningServer, client: openai.OpenAI) -> None:
    prompt = "ask me"
    answer = client.completions.create(prompt=prompt, max_tokens=12, extra_body={"ignore_eos": True}, **GREEDY)
    expected = greedy_tokens(server, ids_of(server, prompt), 12)
    assert answer.choices[0].text == server.llm.tokenizer.decode(expected, skip_special_tokens=True)
    assert answer.choices[0].finish_reason == "length"
    assert (answer.object, answer.model, answer.created) == ("text_completion", "tiny", STARTED_S)
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (len(prompt), 12)
    assert answer.usage.total_tokens == len(prompt) + 12


def test_the_prompt_may_be_text_or_tokens_and_several(server: RunningServer, client: openai.OpenAI) -> None:
    extra = {"ignore_eos": True}
    texts = client.completions.create(prompt=["ab", "xyz"], n=2, max_tokens=5, extra_body=extra, **GREEDY)
    tokens = client.completions.create(
        prompt=[[97, 98], [120, 121, 122]], n=2, max_tokens=5, extra_body=extra, **GREEDY
    )
    assert [choice.text for choice in texts.choices] == [choice.text for choice in tokens.choices]
    assert [choice.index for choice in texts.choices] == [0, 1, 2, 3]
    assert texts.choices[0].text == texts.choices[1].text != texts.choices[2].text
    assert texts.usage is not None
    assert (texts.usage.prompt_tokens, texts.usage.completion_tokens) == (5, 20)
    single = client.completions.create(prompt=[97, 98], max_tokens=5, extra_body=extra, **GREEDY)
    assert single.choices[0].text == texts.choices[0].text


def test_a_stream_has_the_same_text_in_whole_characters(server: RunningServer, client: openai.OpenAI) -> None:
    token_ids = ids_of(server, TEXT)
    with client.completions.create(prompt="a", stream=True, **forced(token_ids), **GREEDY) as stream:
        chunks = list(stream)
    pieces = [chunk.choices[0].text for chunk in chunks]
    assert "".join(pieces) == TEXT
    assert all(pieces)
    assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in pieces)
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["length"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert all(chunk.usage is None for chunk in chunks)


def test_a_stream_that_is_asked_for_usage_ends_with_it(client: openai.OpenAI) -> None:
    arguments = {"prompt": "abc", "max_tokens": 4, "stream": True, "stream_options": {"include_usage": True}}
    with client.completions.create(**arguments, extra_body={"ignore_eos": True}, **GREEDY) as stream:
        chunks = list(stream)
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (3, 4)
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_with_token_ids_every_token_has_its_event(server: RunningServer, client: openai.OpenAI) -> None:
    token_ids = ids_of(server, TEXT)
    with client.completions.create(
        prompt="a", stream=True, **forced(token_ids, return_token_ids=True), **GREEDY
    ) as stream:
        choices = [chunk.choices[0].model_dump() for chunk in stream]
    assert [choice["token_ids"] for choice in choices] == [[token_id] for token_id in token_ids]
    assert [choice.get("prompt_token_ids") for choice in choices] == [[97]] + [None] * (len(choices) - 1)
    whole = client.completions.create(prompt="a", **forced(token_ids, return_token_ids=True), **GREEDY)
    choice = whole.choices[0].model_dump()
    assert (choice["token_ids"], choice["prompt_token_ids"], choice["text"]) == (token_ids, [97], TEXT)


def test_completion_logprobs_are_the_models_own(server: RunningServer, client: openai.OpenAI) -> None:
    token_ids = [ord("x"), 0xE4, 261, ord(" "), END, ord("y")]
    answer = client.completions.create(prompt="ab", logprobs=2, **forced(token_ids), **GREEDY)
    assert answer.choices[0].text == "x中 y"
    told = answer.choices[0].logprobs
    assert told is not None
    assert told.tokens == ["x", "bytes:\\xe4", "bytes:\\xb8\\xad", " ", "</s>", "y"]
    assert told.text_offset == [0, 1, 1, 2, 3, 3]
    rows = server.llm.logits([97, 98, *token_ids]).log_softmax(-1)[1:-1]
    assert told.token_logprobs == pytest.approx(
        [float(row[i]) for row, i in zip(rows, token_ids, strict=True)], abs=1e-4
    )
    assert told.top_logprobs is not None
    for top, name, logprob in zip(told.top_logprobs, told.tokens, told.token_logprobs or [], strict=True):
        assert top[name] == logprob
        assert len(top) in (2, 3)
    by_id = client.completions.create(
        prompt="ab", logprobs=0, **forced(token_ids, return_tokens_as_token_ids=True), **GREEDY
    )
    assert by_id.choices[0].logprobs is not None
    assert by_id.choices[0].logprobs.tokens == [f"token_id:{token_id}" for token_id in token_ids]


def test_streamed_logprobs_are_those_of_the_whole_answer(client: openai.OpenAI) -> None:
    arguments: dict[str, Any] = {"prompt": "ab", "max_tokens": 20, "logprobs": 1, "extra_body": {"ignore_eos": True}}
    whole = client.completions.create(**arguments, **GREEDY).choices[0]
    with client.completions.create(stream=True, **arguments, **GREEDY) as stream:
        parts = [chunk.choices[0] for chunk in stream]
    assert "".join(part.text for part in parts) == whole.text
    assert whole.logprobs is not None
    for field in ("tokens", "token_logprobs", "text_offset", "top_logprobs"):
        streamed = [entry for part in parts for entry in getattr(part.logprobs, field)]
        assert streamed == getattr(whole.logprobs, field)


def test_a_stop_string_cuts_the_text_before_it_streamed_or_not(server: RunningServer, client: openai.OpenAI) -> None:
    """The stop string is found in what the model says freely, across its tokens."""
    extra = {"ignore_eos": True}
    whole = client.completions.create(prompt="tell", max_tokens=60, extra_body=extra, **GREEDY).choices[0].text
    stop = next(whole[i : i + 3] for i in range(4, 50) if "\N{REPLACEMENT CHARACTER}" not in whole[i : i + 3])
    arguments: dict[str, Any] = {"prompt": "tell", "max_tokens": 60, "stop": ["\x00never", stop], "extra_body": extra}
    cut = client.completions.create(**arguments, **GREEDY)
    assert cut.choices[0].text == whole[: whole.index(stop)]
    assert cut.choices[0].finish_reason == "stop"
    assert cut.usage is not None
    assert cut.usage.completion_tokens < 60
    with client.completions.create(stream=True, **arguments, **GREEDY) as stream:
        parts = [chunk.choices[0] for chunk in stream]
    assert "".join(part.text for part in parts) == cut.choices[0].text
    assert parts[-1].finish_reason == "stop"


def test_a_stop_token_ends_an_answer_and_is_not_shown(client: openai.OpenAI) -> None:
    extra: dict[str, Any] = {"ignore_eos": True, "return_token_ids": True}
    whole = client.completions.create(prompt="tell", max_tokens=20, extra_body=extra, **GREEDY).choices[0].model_dump()
    stop = whole["token_ids"][7]
    cut = client.completions.create(
        prompt="tell", max_tokens=20, extra_body=extra | {"stop_token_ids": [stop]}, **GREEDY
    )
    choice = cut.choices[0].model_dump()
    assert choice["token_ids"] == whole["token_ids"][: whole["token_ids"].index(stop) + 1]
    assert choice["finish_reason"] == "stop"
    assert whole["text"].startswith(choice["text"].rstrip("\N{REPLACEMENT CHARACTER}"))


def test_choices_draw_apart_and_seeds_repeat(client: openai.OpenAI) -> None:
    def texts(**arguments: Any) -> list[str]:
        answer = client.completions.create(
            model="tiny", prompt="ab", max_tokens=24, temperature=1.0, extra_body={"ignore_eos": True}, **arguments
        )
        return [choice.text for choice in answer.choices]

    three = texts(n=3, seed=5)
    assert len(set(three)) == 3
    assert texts(n=3, seed=5) == three
    assert texts(n=1, seed=5) == three[:1]
    assert texts(n=1, seed=6) != three[:1]
    assert texts() != texts()


def test_streamed_choices_are_told_apart_by_their_index(client: openai.OpenAI) -> None:
    arguments: dict[str, Any] = {
        "prompt": "ab", "max_tokens": 10, "temperature": 1.0, "seed": 3, "n": 6, "extra_body": {"ignore_eos": True},
        "model": "tiny",
    }  # fmt: skip
    whole = client.completions.create(**arguments)
    texts = dict.fromkeys(range(6), "")
    with client.completions.create(stream=True, **arguments) as stream:
        for chunk in stream:
            texts[chunk.choices[0].index] += chunk.choices[0].text
    assert texts == {choice.index: choice.text for choice in whole.choices}


def test_models_are_listed_with_what_was_loaded(server: RunningServer, client: openai.OpenAI) -> None:
    [model] = client.models.list().data
    assert (model.id, model.owned_by) == ("tiny", "quantgate")
    loaded = model.model_dump()["quantgate"]
    info = server.llm.info
    assert (loaded["scheme"], loaded["weight_bytes"]) == ("fp32", info.weight_bytes)
    assert set(loaded) >= {
        "scheme", "weights_sha256", "tokenizer_sha256", "kv_dtype", "compute_dtype", "head_dtype", "weight_bytes",
        "linear_weight_bytes", "load_seconds", "kernel_set", "kernel_paths", "recorded_steps", "max_context_tokens",
    }  # fmt: skip
    assert client.models.retrieve("tiny").id == "tiny"
