"""The official client's chats against a running server."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from tests.engine.byte_tokenizer import ASSISTANT, USER
from tests.server.requests import GREEDY, TEXT, forced, greedy_tokens, ids_of
from tests.server.running import RunningServer


def test_a_chat_goes_through_the_template(server: RunningServer, client: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "hi"}]
    extra = {"return_token_ids": True, "ignore_eos": True}
    answer = client.chat.completions.create(messages=messages, max_tokens=6, extra_body=extra, **GREEDY)
    prompt = [USER, *b"hi", ASSISTANT]
    assert answer.model_dump()["prompt_token_ids"] == prompt
    assert answer.object == "chat.completion"
    assert answer.choices[0].message.role == "assistant"
    expected = greedy_tokens(server, prompt, 6)
    assert answer.choices[0].model_dump()["token_ids"] == expected
    assert answer.choices[0].message.content == server.llm.tokenizer.decode(expected, skip_special_tokens=True)
    parts: Any = [{"role": "user", "content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]}]
    extra["chat_template_kwargs"] = {"prefix": "!"}
    other = client.chat.completions.create(messages=parts, max_tokens=1, extra_body=extra, **GREEDY)
    assert other.model_dump()["prompt_token_ids"] == [USER, *b"!h\ni", ASSISTANT]


def test_a_chat_stream_opens_with_the_role_and_ends_with_the_reason(
    server: RunningServer, client: openai.OpenAI
) -> None:
    messages: Any = [{"role": "user", "content": "hi"}]
    options: Any = {"include_usage": True}
    with client.chat.completions.create(
        messages=messages, stream=True, stream_options=options, **forced(ids_of(server, TEXT)), **GREEDY
    ) as stream:
        *chunks, last = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].delta.role for chunk in chunks[1:]] == [None] * (len(chunks) - 1)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT
    assert chunks[-1].choices[0].finish_reason == "length"
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert last.usage is not None
    assert last.usage.completion_tokens == len(ids_of(server, TEXT))


def test_chat_logprobs_have_bytes_and_alternatives(server: RunningServer, client: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "hi"}]
    arguments: dict[str, Any] = {"messages": messages, "logprobs": True, "top_logprobs": 3}
    token_ids = [ord("a"), 0xE4, 261]
    answer = client.chat.completions.create(**arguments, **forced(token_ids), **GREEDY)
    assert answer.choices[0].logprobs is not None
    content = answer.choices[0].logprobs.content
    assert content is not None
    assert bytes(byte for entry in content for byte in entry.bytes or []).decode() == "a中"
    rows = server.llm.logits([USER, *b"hi", ASSISTANT, *token_ids]).log_softmax(-1)[3:-1]
    for row, token_id, entry in zip(rows, token_ids, content, strict=True):
        assert entry.logprob == pytest.approx(float(row[token_id]), abs=1e-4)
        assert [each.logprob for each in entry.top_logprobs] == pytest.approx(row.topk(3).values.tolist(), abs=1e-4)
