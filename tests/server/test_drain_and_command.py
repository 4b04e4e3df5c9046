"""The end of a server, and `quantgate serve` as a process."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from tests.server.running import LIMIT_S, RunningServer, wait_until

from quantgate.cli.serve import serve as serve_command
from quantgate_engine import LLM
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.request import AbortCause

LONG = {"prompt": "a", "max_tokens": 450, "ignore_eos": True, "stream": True}


async def _status(url: str, method: str = "GET", body: Any = None) -> int:
    # A connection of its own: those that were open before are closed at the end.
    async with aiohttp.ClientSession() as session, session.request(method, url, json=body) as response:
        await response.read()
        return response.status


def test_a_drain_lets_those_that_run_finish_and_no_new_ones_in(load: Callable[..., LLM]) -> None:
    server = RunningServer(load(), drain_s=float(LIMIT_S)).__enter__()

    async def scenario() -> bytes:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{server.url}/v1/completions", json=LONG) as response,
        ):
            first = await response.content.readline()
            server.begin_drain()
            await asyncio.to_thread(wait_until, lambda: server.service.gate.draining)
            assert await _status(f"{server.url}/health") == 503
            assert await _status(f"{server.url}/v1/completions", "POST", {"prompt": "a"}) == 503
            return first + await response.read()

    content = asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    assert content.endswith(b"data: [DONE]\n\n")
    assert b'"finish_reason":"length"' in content
    server.join()
    assert server.llm.core.aborts_by_cause == {}
    assert server.llm.core.held_blocks == 0


def test_after_the_drain_time_the_rest_is_given_up_and_told_so(load: Callable[..., LLM]) -> None:
    server = RunningServer(load(), drain_s=0.0).__enter__()

    async def scenario() -> bytes:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{server.url}/v1/completions", json=LONG) as response,
        ):
            await response.content.readline()
            server.begin_drain()
            return await response.read()

    content = asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    last = content.strip().splitlines()[-1]
    assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == "shutting_down"
    server.join()
    assert server.llm.core.aborts_by_cause == {AbortCause.SHUTDOWN: 1}
    assert server.llm.core.held_blocks == 0


def _command(model: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "quantgate", "serve", str(model), "--scheme", "fp32", *options]


@contextmanager
def _process(command: list[str], environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | (environment or {})
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=LIMIT_S)


def test_the_command_serves_with_a_key_and_ends_with_zero(byte_model: Path) -> None:
    options = ["--port", "0", "--served-model-name", "mine", "--api-key-env", "TEST_SERVE_KEY", "--json",
        "--max-context-tokens", "256", "--num-kv-blocks", "8"]  # fmt: skip
    with _process(_command(byte_model, *options), {"TEST_SERVE_KEY": "one, two"}) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert (ready["schema"], ready["model"], ready["scheme"]) == ("quantgate.serve/1", "mine", "fp32")
        with openai.OpenAI(base_url=f"{ready['url']}/v1", api_key="two", max_retries=0, timeout=LIMIT_S) as client:
            assert client.models.list().data[0].id == "mine"
            assert client.completions.create(model="mine", prompt="a", max_tokens=2).choices
        with (
            openai.OpenAI(base_url=f"{ready['url']}/v1", api_key="three", max_retries=0) as stranger,
            pytest.raises(openai.AuthenticationError),
        ):
            stranger.models.list()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0
        assert errors.splitlines() == [
            "Note: max_context_tokens is 256, but num_kv_blocks or max_kv_tokens leave a request 129 tokens; longer "
            "ones are refused.",
            f"serving on {ready['url']} (mine, fp32)",
            "stopping: no request is running",
        ]


def test_a_stop_tells_what_is_waited_for_and_impatience_changes_no_exit_code(byte_model: Path) -> None:
    with _process(_command(byte_model, "--port", "0", "--json")) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = json.loads(process.stdout.readline())["url"]
        assert process.stderr.readline().startswith("serving on ")

        async def scenario() -> str:
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{url}/v1/completions", json=LONG | {"n": 4}) as response,
            ):
                await response.content.readline()
                process.send_signal(signal.SIGINT)
                told = await asyncio.to_thread(process.stderr.readline)
                process.send_signal(signal.SIGINT)
                await response.read()
                return told

        told = asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
        assert told == "stopping: up to 30 s for 4 answers to end; a second signal gives them up\n"
        impatient = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
        while process.poll() is None:
            process.send_signal(impatient[0])
            impatient.append(impatient.pop(0))
            time.sleep(0.005)
        assert process.returncode == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"api_key_env": ["TEST_NO_SUCH_KEY"]}, "--api-key-env names TEST_NO_SUCH_KEY, which is not set or empty"),
        ({"rate_limit": "often"}, "--rate-limit is 'often'; expected requests per minute"),
        ({"rate_limit": "0/min"}, "--rate-limit is '0/min'"),
        ({"host": "256.1.1.1"}, "256.1.1.1:8000 cannot be served on"),
        ({"port": 0, "scheme": "int5"}, "int5"),
    ],
)
def test_wrong_settings_end_with_one_sentence(byte_model: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        serve_command(str(byte_model), **options)


def test_the_engine_may_stand_in_a_file_but_for_what_a_server_says_itself(
    byte_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apps: list[Any] = []
    monkeypatch.setattr("quantgate_engine.server.serve.serve", lambda app, *_others: apps.append(app))
    file = tmp_path / "engine.yaml"
    file.write_text("pools: [{name: quick, engine: {max_active_requests: 2}}, {name: rest}]\nkv_dtype: int8\n")
    serve_command(str(byte_model), scheme="fp32", port=0, engine=file, max_active_requests=5)
    [app] = apps
    assert app.state.service.llm.info.kv_dtype == "int8"
    assert app.state.service.engine.max_active_requests == 2 + 5
    file.write_text("timeouts: {request_s: 5}\n")
    with pytest.raises(ConfigurationError, match=r"engine\.yaml, line 1, field timeouts: a server"):
        serve_command(str(byte_model), scheme="fp32", port=0, engine=file)


@pytest.mark.parametrize(("host", "warned"), [("0.0.0.0", True), ("127.0.0.1", False), ("localhost", False)])
def test_an_open_address_without_a_key_is_warned_about(
    byte_model: Path, host: str, warned: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("quantgate_engine.server.serve.serve", lambda _app, _listening, ready, _draining: ready())
    serve_command(str(byte_model), scheme="fp32", host=host, port=0)
    errors = capsys.readouterr().err
    assert errors.startswith("Warning: 0.0.0.0 is open to the network") == warned
    assert "serving on http://" in errors
