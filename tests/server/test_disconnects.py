"""Clients that go away, read slowly or are cut off: nothing is left of their requests."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import aiohttp
import pytest
from tests.server.held_engine import HeldEngine
from tests.server.running import LIMIT_S, RunningServer, wait_until

from quantgate_engine import LLM
from quantgate_engine.request import AbortCause
from quantgate_engine.server.app import create_app
from quantgate_engine.server.settings import ServerSettings

REQUESTS, CONNECTIONS, LEAVERS = 1000, 64, 0.2
LONG = {"prompt": "a", "max_tokens": 450, "ignore_eos": True}


def test_a_thousand_requests_with_clients_that_leave_keep_no_block_and_no_task(load: Callable[..., LLM]) -> None:
    """64 connections; one client in five leaves: at once, after a few events, or while it waits for the whole."""
    llm = load(max_active_requests=16, max_step_tokens=64, num_kv_blocks=256)
    with RunningServer(llm) as server:
        tasks_before = server.num_tasks()
        outcomes = asyncio.run(asyncio.wait_for(_crowd(server), 4 * LIMIT_S))
        wait_until(server.is_quiet)
        wait_until(lambda: server.num_tasks() == tasks_before)
        llm.core.check_integrity()
        assert server.service.engine.load.waiting_requests == 0
        assert outcomes["left"] + outcomes["done"] == REQUESTS
        assert 0.1 * REQUESTS < outcomes["left"] < 0.3 * REQUESTS
        # Who leaves before the server has read the request never reaches the engine; most do.
        assert 0.5 * outcomes["left"] < llm.core.aborts_by_cause[AbortCause.DISCONNECT] <= outcomes["left"]
        assert llm.core.aborts_by_cause.keys() == {AbortCause.DISCONNECT}
    assert llm.core.held_blocks == 0
    assert not [thread.name for thread in threading.enumerate() if thread.name == "quantgate-engine-steps"]


async def _crowd(server: RunningServer) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    numbers = iter(range(REQUESTS))
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)

    async with aiohttp.ClientSession(connector=connector) as session:

        async def one_after_another() -> None:
            for number in numbers:
                outcomes[await _visit(session, server.url, random.Random(number))] += 1

        await asyncio.gather(*(one_after_another() for _ in range(CONNECTIONS)))
    return outcomes


async def _visit(session: aiohttp.ClientSession, url: str, draws: random.Random) -> str:
    leaves, streams = draws.random() < LEAVERS, draws.random() < 0.5
    # Those that leave ask for far more than they can have got by then.
    body = {
        "prompt": "x" * draws.randint(1, 60), "max_tokens": 400 if leaves else draws.randint(1, 12),
        "ignore_eos": True, "stream": streams, "temperature": draws.choice([0, 1]), "seed": 1,
    }  # fmt: skip
    if leaves:
        with suppress(TimeoutError):
            async with asyncio.timeout(draws.uniform(0.0, 0.06)):
                async with session.post(f"{url}/v1/completions", json=body) as response:
                    async for _ in response.content:
                        pass
                return "done"
        return "left"
    async with session.post(f"{url}/v1/completions", json=body) as response:
        content = await response.read()
        assert response.status == 200, content
        assert content.endswith(b"data: [DONE]\n\n") if streams else json.loads(content)["choices"]
    return "done"


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("place", ["running", "waiting"])
def test_a_client_that_leaves_aborts_its_request_wherever_it_stands(
    load: Callable[..., LLM], streams: bool, place: str
) -> None:
    llm = load(max_active_requests=1)
    held = HeldEngine(llm)
    with RunningServer(llm) as server:

        async def scenario() -> None:
            async with aiohttp.ClientSession() as session:

                async def ask() -> None:
                    body = LONG | {"stream": streams}
                    async with session.post(f"{server.url}/v1/completions", json=body) as response:
                        await response.read()

                first = asyncio.create_task(ask())
                assert await asyncio.to_thread(held.entered.wait, LIMIT_S)
                second = asyncio.create_task(ask())
                await asyncio.to_thread(wait_until, lambda: len(llm.core._requests) == 2)
                leaving, staying = (first, second) if place == "running" else (second, first)
                leaving.cancel()
                await asyncio.to_thread(wait_until, lambda: server.service.gate.inside == 1)
                held.release()
                await staying

        asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
        wait_until(server.is_quiet)
        assert llm.core.aborts_by_cause == {AbortCause.DISCONNECT: 1}


def test_a_client_that_leaves_takes_all_its_choices_along(load: Callable[..., LLM]) -> None:
    llm = load()
    with RunningServer(llm) as server:

        async def leave() -> None:
            async with aiohttp.ClientSession() as session:
                body = LONG | {"stream": True, "n": 4}
                async with session.post(f"{server.url}/v1/completions", json=body) as response:
                    await response.content.readline()

        asyncio.run(leave())
        wait_until(server.is_quiet)
        assert llm.core.aborts_by_cause == {AbortCause.DISCONNECT: 4}


def test_a_client_that_reads_too_slowly_is_given_up_and_cut_off(load: Callable[..., LLM]) -> None:
    """In memory: a connection that takes one event and then nothing more."""
    llm = load()
    app = create_app(llm, ServerSettings(served_name="tiny", max_unread_chunks=4, request_timeout_s=2.0), lambda: 0.0)
    body = json.dumps(LONG | {"stream": True}).encode()
    sent: list[Any] = []

    async def scenario() -> None:
        service = app.state.service
        await service.engine.start()
        incoming: asyncio.Queue[Any] = asyncio.Queue()
        incoming.put_nowait({"type": "http.request", "body": body, "more_body": False})

        async def send(message: Any) -> None:
            if len(sent) == 2:
                await asyncio.Event().wait()
            sent.append(message)

        scope = {
            "type": "http", "method": "POST", "path": "/v1/completions", "raw_path": b"/v1/completions",
            "query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1", "asgi": {"version": "3.0"},
            "headers": [(b"content-type", b"application/json")], "client": ("test", 1), "server": ("test", 80),
        }  # fmt: skip
        serving = asyncio.create_task(app(scope, incoming.get, send))
        while not llm.core.aborts_by_cause:
            await asyncio.sleep(0.002)
        await serving
        assert service.gate.inside == 0
        await service.engine.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert llm.core.aborts_by_cause == {AbortCause.BACKPRESSURE: 1}
    assert llm.core.held_blocks == 0
