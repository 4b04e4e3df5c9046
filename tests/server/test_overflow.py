"""A model whose arithmetic overflows on a prompt: that client gets one sentence, and the others get their answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.engine.byte_tokenizer import END, VOCABULARY, save_byte_tokenizer
from tests.engine.tiny_model import save_tiny_model
from tests.overflowing_model import make_overflow
from tests.server.running import RunningServer, wait_until

from quantgate_engine import LLM

FINE, BROKEN, HUGE = "abc", "aZb", "abY"
SHORT = {"max_tokens": 5, "temperature": 0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("overflowing") / "tiny"
    save_tiny_model(
        folder,
        vocab_size=VOCABULARY,
        eos_token_id=END,
        bos_token_id=None,
        num_hidden_layers=2,
        tie_word_embeddings=False,
    )
    save_byte_tokenizer(folder)
    make_overflow(folder, ord("Z"), ord("Y"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUANTGATE_CACHE", str(folder.parent / "cache"))
        with RunningServer(LLM(folder, "fp16", max_active_requests=4, deterministic=True)) as running:
            yield running


def ask(server: RunningServer, *bodies: dict[str, Any], path: str = "/v1/completions") -> list[tuple[int, str]]:
    """All at the same time."""

    async def post(session: aiohttp.ClientSession, body: dict[str, Any]) -> tuple[int, str]:
        async with session.post(server.url + path, json=body) as response:
            return response.status, await response.text()

    async def post_all() -> list[tuple[int, str]]:
        async with aiohttp.ClientSession() as session:
            return await asyncio.gather(*(post(session, body) for body in bodies))

    return asyncio.run(post_all())


@pytest.mark.parametrize("prompt", [BROKEN, HUGE])
@pytest.mark.parametrize(
    "asked",
    [{}, {"logprobs": 3}, {"temperature": 1.0, "seed": 3}, {"prompt_logprobs": 1}, {"echo": True, "logprobs": 0}],
    ids=str,
)
def test_only_the_client_whose_prompt_overflows_is_told_so(
    prompt: str, asked: dict[str, Any], server: RunningServer
) -> None:
    [alone] = ask(server, {"prompt": FINE, **SHORT, **asked})
    assert alone[0] == 200
    told, *others = ask(server, *({"prompt": each, **SHORT, **asked} for each in (prompt, FINE, FINE)))
    for status, text in others:
        assert (status, choices(text)) == (200, choices(alone[1]))
    assert told[0] == 500
    error = strict_json(told[1])["error"]
    assert error["type"] == "server_error"
    assert "the model's arithmetic overflowed" in error["message"]
    assert "fault of quantgate" not in error["message"]
    wait_until(server.is_quiet)


def test_a_stream_ends_with_the_sentence(server: RunningServer) -> None:
    [(status, text)] = ask(server, {"prompt": BROKEN, "stream": True, "logprobs": 2})
    assert "the model's arithmetic overflowed" in text
    assert status == 500 or "data: " in text


def test_whole_distributions_that_are_none_are_refused(server: RunningServer) -> None:
    body = {"prompt_token_ids": list(BROKEN.encode()), "continuations": [[97]]}
    [(status, text)] = ask(server, body, path="/quantgate/continuation_logits")
    assert status == 500
    assert "the model's arithmetic overflowed" in strict_json(text)["error"]["message"]


def choices(text: str) -> Any:
    return strict_json(text)["choices"]


def strict_json(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)
