"""The work that a body makes is bounded by its size, whatever it holds."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from tests.engine.byte_tokenizer import make_byte_tokenizer
from tests.server.requests import ids_of
from tests.server.running import RunningServer

from quantgate_engine.server.api_error import ApiError
from quantgate_engine.server.invalid_body import invalid_body
from quantgate_engine.server.json_body import MAX_CONTAINERS, MAX_VALUES, json_object
from quantgate_engine.server.protocol.chat import ChatCompletionRequest
from quantgate_engine.server.protocol.completions import CompletionRequest
from quantgate_engine.server.protocol.continuations import ContinuationsRequest
from quantgate_engine.server.protocol.text import MAX_DETOKENIZED, DetokenizeRequest, TokenizeRequest
from quantgate_engine.text.token_pieces import TokenPieces

MANY = 5000
USER = {"role": "user", "content": "a"}


@pytest.mark.parametrize(
    ("model", "fields", "message"),
    [
        (CompletionRequest, {"prompt": [[]] * MANY}, "prompt.0: expected at least 1 entry, and there is none."),
        (CompletionRequest, {"prompt": [1] + ["a"] * MANY}, "prompt.1: Input should be a valid integer."),
        (CompletionRequest, {"prompt": ["a"] + [1] * MANY}, "prompt.1: Input should be a valid string."),
        (CompletionRequest, {"prompt": [[1], ["a"] * MANY]}, "prompt.1.0: Input should be a valid integer."),
        (CompletionRequest, {"prompt": "a", "stop": [1] * MANY}, "stop.0: Input should be a valid string."),
        (CompletionRequest, {"prompt": "a", "stop_token_ids": [-1] * MANY}, "stop_token_ids.0: Input should be greater "
         "than or equal to 0."),
        (CompletionRequest, {"prompt": "a", "forced_token_ids": [None] * MANY}, "forced_token_ids.0: Input should be a "
         "valid integer."),
        (CompletionRequest, {"prompt": "a", "logit_bias": {f"x{number}": 1 for number in range(MANY)}},
         "logit_bias.x0: expected a token id as the name, such as 42 in quotes."),
        (CompletionRequest, {"prompt": "a", "logit_bias": {str(number): 1e9 for number in range(MANY)}},
         "logit_bias.0: Input should be less than or equal to 100."),
        (CompletionRequest, {"prompt": "a", "stop_token_ids": [1] * MANY}, "stop_token_ids: expected at most 4096 "
         "entries, and there are more."),
        (ChatCompletionRequest, {"messages": [{}] * MANY}, "messages.0.role: it is missing; this request needs it."),
        (ChatCompletionRequest, {"messages": [USER, {"role": "user", "content": [3] * MANY}]},
         "messages.1.content.0: expected an object."),
        (TokenizeRequest, {"messages": [3] * MANY}, "messages.0: expected an object."),
        (DetokenizeRequest, {"tokens": ["a"] * MANY}, "tokens.0: Input should be a valid integer."),
        (DetokenizeRequest, {"tokens": [1] * (MAX_DETOKENIZED + 1)},
         f"tokens: expected at most {MAX_DETOKENIZED} entries, and there are more."),
        (ContinuationsRequest, {"prompt_token_ids": [1], "continuations": [[]] * MANY},
         "continuations.0: expected at least 1 entry, and there is none."),
    ],
    ids=range(16),
)  # fmt: skip
def test_the_first_fault_ends_the_check(model: type[BaseModel], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as wrong:
        model.model_validate(fields)
    # Each of two fields at most: nothing grows with the list.
    assert wrong.value.error_count() <= 2
    errors = [{**error, "loc": ("body", *error["loc"])} for error in wrong.value.errors()]
    told = invalid_body(RequestValidationError(errors), None)
    assert (told.detail, told.param) == (message, message.partition(":")[0].partition(".")[0])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b'{"prompt": [' + b",".join([b"[]"] * MAX_CONTAINERS) + b"]}",
            "The body has more than 16384 lists and objects",
        ),
        (
            b'{"messages": [' + b",".join([b"{}"] * MAX_CONTAINERS) + b"]}",
            "The body has more than 16384 lists and objects",
        ),
        (b'{"prompt": [' + b",".join([b"1"] * MAX_VALUES) + b"]}", "prompt holds too much: a body may have 1048576"),
    ],
    ids=range(3),
)
def test_a_body_has_so_many_parts_at_most(body: bytes, message: str) -> None:
    with pytest.raises(ApiError, match=message):
        json_object(body)


@pytest.mark.parametrize(
    "document",
    [
        {"prompt": [[1]] * (MAX_CONTAINERS - 2)},
        {"prompt": "[{" * MAX_CONTAINERS},
        {"prompt": ['\\"[' * MAX_CONTAINERS, "\\", "[{\\\\" * MAX_CONTAINERS]},
    ],
    ids=range(3),
)
def test_as_many_as_are_allowed_pass_and_brackets_in_texts_do_not_count(document: dict[str, Any]) -> None:
    assert json_object(json.dumps(document).encode()) == document


def test_a_prompt_that_cannot_fit_is_not_encoded(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = server.service.engine.max_sequence_tokens
    encoded: list[object] = []
    monkeypatch.setattr(server.service, "encode", encoded.append)
    for prompt, counted in (("a" * 100_000, "at least "), ([1] * (longest + 1), "")):
        for count in (1, 0):
            answer = httpx.post(f"{server.url}/v1/completions", json={"prompt": prompt, "max_tokens": count})
            error = answer.json()["error"]
            assert (answer.status_code, error["param"]) == (400, "prompt")
            assert error["code"] == "context_length_exceeded"
            assert error["message"].startswith(f"prompt has {counted}")
            assert error["message"].endswith(f"expected at most {longest}, the longest context that runs here.")
    assert not encoded


@pytest.mark.parametrize("extra", [{"max_tokens": 0}, {"prompt_logprobs": 1}, {"echo": True, "logprobs": 0}])
def test_a_prompt_above_the_context_is_refused_by_its_tokens_whatever_is_asked(
    server: RunningServer, extra: dict[str, Any]
) -> None:
    text = "the " * 400
    tokens = len(ids_of(server, text))
    answer = httpx.post(f"{server.url}/v1/completions", json={"prompt": ["a", text], **extra})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "prompt")
    assert error["message"].startswith(f"prompt.1 has {tokens} tokens; expected at most 512")


def test_a_chat_above_the_context_is_refused_by_its_tokens(server: RunningServer) -> None:
    messages = [{"role": "user", "content": "a" * 600}]
    error = httpx.post(f"{server.url}/v1/chat/completions", json={"messages": messages}).json()["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")
    assert error["message"].startswith("messages has 602 tokens")


def test_the_longest_token_is_known() -> None:
    pieces = TokenPieces(make_byte_tokenizer())
    assert pieces.longest_bytes == len("<|assistant|>")
