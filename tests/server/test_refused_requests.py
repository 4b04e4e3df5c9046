"""What the server does not take, and how it says so; and what it ignores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest
from tests.server.requests import GREEDY
from tests.server.running import RunningServer


@pytest.mark.parametrize("call", ["completions", "chat"])
def test_another_model_is_not_found(client: openai.OpenAI, call: str) -> None:
    messages: Any = [{"role": "user", "content": "a"}]
    calls: dict[str, Callable[[], object]] = {
        "completions": lambda: client.completions.create(model="other", prompt="a"),
        "chat": lambda: client.chat.completions.create(model="other", messages=messages),
    }
    with pytest.raises(openai.NotFoundError, match="'other' is not served here; expected 'tiny'"):
        calls[call]()


@pytest.mark.parametrize(
    ("arguments", "param", "message"),
    [
        ({"prompt": "a", "temperature": -1}, "temperature", "temperature: .*greater than or equal to 0"),
        ({"prompt": "a", "max_tokens": "many"}, "max_tokens", "max_tokens: .*valid integer"),
        ({"prompt": "a", "stop": [""]}, "stop", "stop.0: .*at least 1 character"),
        ({"prompt": ""}, "prompt", "prompt is empty; expected at least one token"),
        ({"prompt": ["a", ""]}, "prompt", r"prompt\.1 is empty; expected at least one token"),
        ({"prompt": [[5, 999]]}, "prompt", "prompt holds token id 999; expected 0 to 263"),
        ({"prompt": {"a": 1}}, "prompt", "prompt: expected a text, a list of texts, a list of token ids"),
        ({"prompt": "a", "max_tokens": 5000}, "max_tokens", "5001, above the context limit of 512"),
        ({"prompt": "a", "extra_body": {"min_tokens": 3}}, "min_tokens", "min_tokens: this server does not support it"),
        ({"prompt": "a", "best_of": 2}, "best_of", "best_of: this server does not support it"),
        (
            {"prompt": "a", "extra_body": {"forced_token_ids": [1, 2]}, "max_tokens": 3},
            "forced_token_ids",
            "there are 2, and max_tokens is 3",
        ),
    ],
)
def test_a_wrong_request_is_told_which_field_and_why(
    client: openai.OpenAI, arguments: dict[str, Any], param: str | None, message: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=message) as refused:
        client.completions.create(model="tiny", **arguments)
    assert refused.value.param == param
    assert refused.value.type == "invalid_request_error"


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (b'{"model": "tiny"}', "application/x-www-form-urlencoded",
         "The header Content-Type is 'application/x-www-form-urlencoded'; expected application/json, with a JSON "
         "object as the body."),
        (b'{"model": "tiny"}', None,
         "The header Content-Type is missing; expected application/json, with a JSON object as the body."),
        (b"", "application/json",
         "The body is empty; expected a JSON object, sent with Content-Type application/json."),
        (b"[1]", "application/json", "The body is JSON, but no object; expected a JSON object."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["completions", "chat/completions"])
def test_what_is_no_json_object_is_told_apart(
    server: RunningServer, path: str, body: bytes, content_type: str | None, message: str
) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    answer = httpx.post(f"{server.url}/v1/{path}", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"messages": []}, "messages: .*at least 1"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            r"messages\.0\.content\.0: a part of the type 'image_url' is not read; .* of the type 'text' alone",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, r"content\.0: .* needs a text"),
        ({"messages": [{"role": "user", "content": 3}]}, r"messages\.0\.content: expected a text, or a list of parts"),
        ({"extra_body": {"chat_template": "x"}}, "chat_template: this server does not support it"),
        ({"extra_body": {"echo": True}}, "echo: this server does not support it"),
        ({"top_logprobs": 2}, "top_logprobs: it needs logprobs: true beside it"),
        ({"max_completion_tokens": 2, "extra_body": {"forced_token_ids": [1]}}, "and max_completion_tokens is 2"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools: this server does not support it"),
        ({"response_format": {"type": "json_object"}}, "response_format: this server does not"),
        (
            {"messages": [{"role": "king", "content": "a"}]},
            "messages.0.role: .*'system', .*'user', 'assistant', 'tool'",
        ),
        ({"messages": [{"role": "user"}]}, r"messages\.0: a message of the role user needs a content, a text\."),
        ({"messages": [{"role": "tool", "content": None}]}, "a message of the role tool needs a content"),
        (
            {"extra_body": {"chat_template_kwargs": {"tokenize": False}}},
            "chat_template_kwargs: Chat template arguments name tokenize",
        ),
        (
            {"extra_body": {"chat_template_kwargs": {"messages": 1, "self": 2}}},
            "template arguments name messages, self",
        ),
        ({"extra_body": {"chat_template_kwargs": {"refused": True}}}, "refuses the messages: no such mode"),
    ],
)
def test_a_wrong_chat_is_told_why(client: openai.OpenAI, arguments: dict[str, Any], message: str) -> None:
    arguments = {"messages": [{"role": "user", "content": "a"}]} | arguments
    with pytest.raises(openai.BadRequestError, match=message):
        client.chat.completions.create(model="tiny", **arguments)


def test_fields_without_an_effect_are_ignored(client: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "a", "name": "me"}]
    extra = {"service_tier": "auto", "top_k": -1, "repetition_penalty": 1.0, "min_p": None, "unheard_of": [1]}
    answer = client.chat.completions.create(
        messages=messages, max_completion_tokens=2, user="me", metadata={"a": "b"}, logit_bias={}, presence_penalty=0,
        response_format={"type": "text"}, extra_body=extra, **GREEDY,
    )  # fmt: skip
    assert answer.usage is not None
    assert answer.usage.completion_tokens <= 2
