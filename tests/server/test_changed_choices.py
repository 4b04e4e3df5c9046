"""Penalties and biases over HTTP: passed on, within OpenAI's limits, and refused with the field at fault."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from tests.server.requests import GREEDY, greedy_tokens
from tests.server.running import RunningServer

from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.server.protocol.completions import CompletionRequest

PROMPT = [5, 6, 7, 8]


def tokens_of(client: openai.OpenAI, **settings: Any) -> list[int]:
    extra = {"return_token_ids": True, "ignore_eos": True, **settings.pop("extra_body", {})}
    answer = client.completions.create(prompt=PROMPT, max_tokens=12, extra_body=extra, **GREEDY, **settings)
    return list(answer.choices[0].token_ids)


def test_a_bias_decides_which_token_comes(client: openai.OpenAI, server: RunningServer) -> None:
    own = greedy_tokens(server, PROMPT, 12)
    assert tokens_of(client, logit_bias={}) == own
    assert tokens_of(client, logit_bias={"65": 100}) == [65] * 12
    assert own[0] not in tokens_of(client, logit_bias={str(own[0]): -100})


def test_all_of_them_are_passed_on() -> None:
    settings = {"presence_penalty": 0.5, "frequency_penalty": -1, "repetition_penalty": 1.5, "min_p": 0.25}
    body = CompletionRequest.model_validate({"prompt": "a", "logit_bias": {"65": -1, "7": 2.5}, **settings})
    expected = SamplingParams(max_tokens=4, temperature=1.0, seed=3, logit_bias={65: -1.0, 7: 2.5}, **settings)
    assert body.sampling_params(4, 3, None) == expected


def test_a_penalty_breaks_off_what_a_bias_repeats(client: openai.OpenAI) -> None:
    repeated = tokens_of(client, logit_bias={"65": 100})
    penalised = tokens_of(client, logit_bias={"65": 100}, extra_body={"repetition_penalty": 50.0})
    assert repeated == [65] * 12
    assert penalised[0] == 65 != penalised[1]


def test_chat_takes_them_too(client: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "a"}]
    answer = client.chat.completions.create(
        messages=messages, max_tokens=5, logit_bias={"65": 100}, frequency_penalty=0.1,
        extra_body={"ignore_eos": True}, **GREEDY,
    )  # fmt: skip
    assert answer.choices[0].message.content == "AAAAA"


@pytest.mark.parametrize(
    ("settings", "param", "message"),
    [
        ({"presence_penalty": 2.1}, "presence_penalty", "presence_penalty: .*less than or equal to 2"),
        ({"frequency_penalty": -3}, "frequency_penalty", "frequency_penalty: .*greater than or equal to -2"),
        ({"extra_body": {"repetition_penalty": 0}}, "repetition_penalty", "repetition_penalty: .*greater than 0"),
        ({"logit_bias": {"65": 101}}, "logit_bias", "logit_bias.65: .*less than or equal to 100"),
        ({"logit_bias": {"sixty": 1}}, "logit_bias", "logit_bias.sixty: expected a token id"),
        ({"logit_bias": {"999": 1}}, "logit_bias", "logit_bias holds token id 999; expected 0 to 263"),
        ({"logit_bias": {"1": 1, "01": 1}}, "logit_bias", "logit_bias.01: expected a token id"),
        ({"logit_bias": {"1\n": 1}}, "logit_bias", r"logit_bias.'1\\n': expected a token id"),
        ({"extra_body": {"stop_token_ids": [999]}}, "stop_token_ids", "stop_token_ids holds token id 999"),
        ({"logit_bias": [1]}, "logit_bias", "logit_bias: expected an object"),
    ],
)
def test_values_out_of_range_are_refused(
    client: openai.OpenAI, settings: dict[str, Any], param: str | None, message: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=message) as refused:
        tokens_of(client, **settings)
    assert refused.value.param == param
