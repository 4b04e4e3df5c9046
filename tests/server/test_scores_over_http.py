"""What only this server and its kind tell: prompt log-probabilities, echo, whole distributions, tokens and text."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import aiohttp
import openai
import pytest
import torch
from safetensors.torch import load as load_tensors
from tests.engine.byte_tokenizer import ASSISTANT, END, USER, VOCABULARY
from tests.server.running import RunningServer

PROMPT = "ab中c"
PROMPT_IDS = [97, 98, 0xE4, 261, 99]


def post(server: RunningServer, path: str, body: Any) -> tuple[int, bytes]:
    async def ask() -> tuple[int, bytes]:
        async with aiohttp.ClientSession() as session, session.post(server.url + path, json=body) as response:
            return response.status, await response.read()

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def expected(server: RunningServer) -> torch.Tensor:
    """Log-probabilities [tokens - 1, vocabulary] of the prompt's tokens but the first."""
    return server.llm.logits(PROMPT_IDS).log_softmax(-1)[:-1]


def test_prompt_logprobs_are_ranked_and_hold_the_prompts_own_tokens(
    client: openai.OpenAI, expected: torch.Tensor
) -> None:
    answer = client.completions.create(model="tiny", prompt=PROMPT, max_tokens=0, extra_body={"prompt_logprobs": 2})
    choice = answer.choices[0].model_dump()
    assert (choice["text"], choice["finish_reason"]) == ("", "length")
    first, *told = choice["prompt_logprobs"]
    assert first is None
    for row, token_id, entry in zip(expected, PROMPT_IDS[1:], told, strict=True):
        own = entry[str(token_id)]
        assert own["logprob"] == pytest.approx(float(row[token_id]), abs=1e-4)
        assert own["rank"] == int((row > row[token_id]).sum()) + 1
        best = {str(best_id) for best_id in row.topk(2).indices.tolist()}
        assert entry.keys() == best | {str(token_id)}
        assert {entry[best_id]["rank"] for best_id in best} == {1, 2}
    assert told[1][str(0xE4)]["decoded_token"] == "bytes:\\xe4"


def test_prompt_logprobs_of_a_chat_are_those_of_its_template(client: openai.OpenAI, server: RunningServer) -> None:
    messages: Any = [{"role": "user", "content": "hi"}]
    answer = client.chat.completions.create(
        model="tiny", messages=messages, max_tokens=1, extra_body={"prompt_logprobs": 0}
    )
    told = answer.model_dump()["prompt_logprobs"]
    tokens = [USER, *b"hi", ASSISTANT]
    assert [None if entry is None else list(entry) for entry in told] == [None, *([str(i)] for i in tokens[1:])]


def test_echo_puts_the_prompt_before_the_answer_and_into_its_logprobs(
    client: openai.OpenAI, expected: torch.Tensor
) -> None:
    arguments: dict[str, Any] = {
        "model": "tiny", "prompt": PROMPT, "echo": True, "logprobs": 1, "temperature": 0,
        "extra_body": {"forced_token_ids": [ord("x"), END]},
    }  # fmt: skip
    choice = client.completions.create(**arguments).choices[0]
    assert choice.text == PROMPT + "x"
    told = choice.logprobs
    assert told is not None
    assert told.tokens == ["a", "b", "bytes:\\xe4", "bytes:\\xb8\\xad", "c", "x", "</s>"]
    assert told.text_offset == [0, 1, 2, 2, 3, 4, 5]
    logprobs = told.token_logprobs
    assert logprobs is not None
    own = [float(row[token_id]) for row, token_id in zip(expected, PROMPT_IDS[1:], strict=True)]
    assert logprobs[0] is None
    assert logprobs[1:5] == pytest.approx(own, abs=1e-4)
    with client.completions.create(stream=True, **arguments) as stream:
        parts = [chunk.choices[0] for chunk in stream]
    assert parts[0].text == PROMPT
    assert "".join(part.text for part in parts) == choice.text
    assert [entry for part in parts for entry in part.logprobs.tokens] == told.tokens


def test_echo_without_an_answer_is_the_prompt(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="tiny", prompt=[[97, 98], [99]], max_tokens=0, echo=True)
    assert [choice.text for choice in answer.choices] == ["ab", "c"]


@pytest.mark.parametrize("chunk_tokens", [None, 2])
def test_whole_distributions_come_bit_for_bit(server: RunningServer, chunk_tokens: int | None) -> None:
    continuations = [[5], [7, 8, 9], [END, 0]]
    body = {"prompt_token_ids": PROMPT_IDS, "continuations": continuations, "chunk_tokens": chunk_tokens}
    status, content = post(server, "/quantgate/continuation_logits", body)
    assert status == 200
    tensors = load_tensors(content)
    own = server.llm.continuation_logits(PROMPT_IDS, continuations, chunk_tokens)
    assert len(tensors) == 3
    for index, logits in enumerate(own):
        assert tensors[str(index)].dtype == torch.float32
        assert torch.equal(tensors[str(index)], logits)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"prompt_token_ids": [], "continuations": [[1]]}, "prompt_token_ids: .*at least 1"),
        ({"prompt_token_ids": [1], "continuations": [[1], []]}, "continuations.1: .*at least 1"),
        ({"prompt_token_ids": [1], "continuations": [[VOCABULARY]]}, "continuations holds token id 264"),
        ({"prompt_token_ids": [1], "continuations": [[1] * 600]}, "continuations has 601 tokens; expected at most 512"),
        ({"prompt_token_ids": [1], "continuations": [[1]], "chunk_tokens": 0}, "chunk_tokens: .*greater than or equal"),
    ],
)
def test_impossible_continuations_are_refused(server: RunningServer, body: Any, message: str) -> None:
    status, content = post(server, "/quantgate/continuation_logits", body)
    assert status == 400
    assert re.search(message, content.decode())


def test_tokenize_and_detokenize(server: RunningServer) -> None:
    status, content = post(server, "/tokenize", {"prompt": PROMPT})
    assert status == 200
    assert json.loads(content) == {"tokens": PROMPT_IDS, "count": 5, "max_model_len": 512}
    _, content = post(server, "/tokenize", {"messages": [{"role": "user", "content": "a"}]})
    assert json.loads(content)["tokens"] == [USER, 97, ASSISTANT]
    _, content = post(server, "/detokenize", {"tokens": [USER, *PROMPT_IDS]})
    assert json.loads(content) == {"prompt": f"<|user|>{PROMPT}"}
    for path, body in [
        ("/tokenize", {}),
        ("/tokenize", {"prompt": "a", "messages": [{"role": "user", "content": "a"}]}),
        ("/detokenize", {"tokens": [2**40]}),
        ("/detokenize", {"tokens": [-1]}),
    ]:
        status, _ = post(server, path, body)
        assert status == 400, (path, body)
