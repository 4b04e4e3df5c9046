"""Keys, rates, queue and body limits, time limits, and errors in OpenAI's shape."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import openai
import pytest
from tests.server.running import LIMIT_S, RunningServer, wait_until

from quantgate.server_metrics.metric import SERVER_METRICS
from quantgate.server_metrics.scrape import read_scrape
from quantgate_engine import LLM
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.server.api_error import ApiError
from quantgate_engine.server.body_limit import BodyReader
from quantgate_engine.server.serve import bind

KEYS = ("first-key", "second-key")
LONG: dict[str, Any] = {"model": "tiny", "prompt": "a", "max_tokens": 450, "extra_body": {"ignore_eos": True}}


@pytest.fixture(scope="module")
def guarded(load: Callable[..., LLM]) -> Iterator[RunningServer]:
    settings = {"api_keys": KEYS, "requests_per_minute": 3, "max_body_bytes": 4096}
    with RunningServer(load(), **settings) as running:
        yield running


def _client(server: RunningServer, key: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0, timeout=LIMIT_S)


def _metrics(server: RunningServer) -> str:
    async def scrape() -> str:
        async with aiohttp.ClientSession() as session, session.get(f"{server.url}/metrics") as response:
            assert response.status == 200
            return await response.text()

    return asyncio.run(scrape())


def test_a_wrong_key_is_refused_and_tells_nothing(guarded: RunningServer) -> None:
    with _client(guarded, "wrong") as client:
        with pytest.raises(openai.AuthenticationError, match="missing or wrong") as refused:
            client.models.list()
        assert refused.value.code == "invalid_api_key"
        with pytest.raises(openai.AuthenticationError):
            client.completions.create(model="tiny", prompt="a")
    assert not any(key in str(refused.value) for key in KEYS)


def test_each_key_has_a_rate_of_its_own_and_is_told_when_to_come_back(guarded: RunningServer) -> None:
    with _client(guarded, KEYS[0]) as first, _client(guarded, KEYS[1]) as second:
        for _ in range(3):
            first.completions.create(model="tiny", prompt="a", max_tokens=1)
        with pytest.raises(openai.RateLimitError, match="3 times a minute") as refused:
            first.completions.create(model="tiny", prompt="a", max_tokens=1)
        assert 1 <= int(refused.value.response.headers["Retry-After"]) <= 20
        second.completions.create(model="tiny", prompt="a", max_tokens=1)
        first.models.list()
    assert 'rejected_count_total{reason="rate_limit_exceeded"} 1.0' in _metrics(guarded)


def test_a_body_above_the_limit_is_refused_whether_it_says_so_or_not(guarded: RunningServer) -> None:
    body = json.dumps({"model": "tiny", "prompt": "a" * 8000}).encode()
    headers = {"Authorization": f"Bearer {KEYS[1]}", "Content-Type": "application/json"}

    async def in_chunks() -> Any:
        for start in range(0, len(body), 1000):
            yield body[start : start + 1000]

    async def send(data: Any) -> tuple[int, dict[str, Any]]:
        url = f"{guarded.url}/v1/completions"
        async with aiohttp.ClientSession() as session, session.post(url, data=data, headers=headers) as response:
            return response.status, await response.json()

    for data in (body, in_chunks()):
        status, answer = asyncio.run(send(data))
        assert (status, answer["error"]["code"]) == (413, "body_too_large")


def test_a_full_house_sends_the_next_one_away_and_lets_it_in_later(load: Callable[..., LLM]) -> None:
    with RunningServer(load(max_active_requests=1), max_queue=1) as server, _client(server, "none") as client:
        with client.completions.create(stream=True, **LONG) as running:
            next(iter(running))
            waiting = threading.Thread(target=lambda: client.completions.create(model="tiny", prompt="a", max_tokens=1))
            waiting.start()
            wait_until(lambda: server.service.gate.inside == 2)
            with pytest.raises(openai.InternalServerError, match="room for 2; try again") as refused:
                client.completions.create(model="tiny", prompt="a", max_tokens=1)
            assert refused.value.status_code == 503
            assert refused.value.response.headers["Retry-After"] == "1"
        waiting.join(LIMIT_S)
        wait_until(server.is_quiet)
        client.completions.create(model="tiny", prompt="a", max_tokens=1)
        with pytest.raises(openai.BadRequestError, match=r"asks for 3 answers .* room for 2 at most; send fewer"):
            client.completions.create(model="tiny", prompt="a", max_tokens=1, n=3)
        wait_until(server.is_quiet)


def test_a_request_that_takes_too_long_is_given_up_waiting_or_running(load: Callable[..., LLM]) -> None:
    """The engine is held in a step, so that the limit passes whatever the machine's speed."""

    llm = load(max_active_requests=1)
    held, execute = threading.Event(), llm.core.executor.execute

    def slow_execute(sequences: Any) -> Any:
        assert held.wait(LIMIT_S)
        return execute(sequences)

    with RunningServer(llm, request_timeout_s=0.2) as server, _client(server, "none") as client:
        llm.core.executor.execute = slow_execute

        async def both() -> list[int]:
            async with aiohttp.ClientSession() as session:
                bodies = [{"prompt": "a", "max_tokens": 400, "ignore_eos": True}] * 2
                asking = [asyncio.create_task(_post(session, server, body)) for body in bodies]
                await asyncio.sleep(0.5)
                held.set()
                return await asyncio.gather(*asking)

        assert asyncio.run(both()) == [503, 503]
        wait_until(server.is_quiet)
        assert 'request_abort_count_total{cause="timeout"} 2.0' in _metrics(server)
        llm.core.executor.execute = execute
        assert client.completions.create(model="tiny", prompt="a", max_tokens=1).usage is not None


async def _post(session: aiohttp.ClientSession, server: RunningServer, body: Any) -> int:
    async with session.post(f"{server.url}/v1/completions", json=body) as response:
        await response.read()
        return response.status


def test_errors_of_the_engine_reach_the_client_in_a_stream_and_without(load: Callable[..., LLM]) -> None:
    llm = load()

    def failing(_sequences: Any) -> Any:
        raise ValueError("planted")

    with RunningServer(llm) as server, _client(server, "none") as client:
        execute, llm.core.executor.execute = llm.core.executor.execute, failing
        with pytest.raises(openai.InternalServerError, match="ValueError: planted"):
            client.completions.create(model="tiny", prompt="a")
        with pytest.raises(openai.InternalServerError, match="ValueError: planted"):
            client.completions.create(model="tiny", prompt="a", stream=True)
        llm.core.executor.execute = execute
        assert client.completions.create(model="tiny", prompt="a").choices
        with client.completions.create(stream=True, **LONG) as stream:
            next(iter(stream))
            llm.core.executor.execute = failing
            with pytest.raises(openai.APIError, match="ValueError: planted"):
                list(stream)
        llm.core.executor.execute = execute
        wait_until(server.is_quiet)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/completions", b"{not json", 400),
        ("POST", "/v1/completions", b"[1]", 400),
        ("POST", "/v1/chat/completions", b'{"model": "tiny"}', 400),
        ("GET", "/v1/completions", b"", 405),
        ("GET", "/nowhere", b"", 404),
    ],
)
def test_every_error_has_one_shape(server: RunningServer, method: str, path: str, body: bytes, status: int) -> None:
    async def send() -> tuple[int, dict[str, Any]]:
        headers = {"Content-Type": "application/json"}
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, server.url + path, data=body, headers=headers) as response,
        ):
            return response.status, await response.json()

    answered, answer = asyncio.run(send())
    assert answered == status
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert answer["error"]["message"]


def test_an_address_that_is_taken_is_told_in_one_sentence() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"127.0.0.1:{port} cannot be served on .*in use"):
            bind("127.0.0.1", port)


def test_health_and_metrics_are_open_and_metrics_have_their_names(guarded: RunningServer) -> None:
    async def health() -> int:
        async with aiohttp.ClientSession() as session, session.get(f"{guarded.url}/health") as response:
            return response.status

    assert asyncio.run(health()) == 200
    with _client(guarded, KEYS[1]) as client:
        client.completions.create(model="tiny", prompt="abc", max_tokens=5, extra_body={"ignore_eos": True})
    text = _metrics(guarded)
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    wanted = (
        "prefill_latency_ms decode_latency_ms ttft_ms tpot_ms active_requests kv_cache_used_tokens "
        "kv_cache_block_utilization request_abort_count oom_count batch_size_prefill batch_size_decode queue_time_ms "
        "preemption_count recomputed_tokens cached_prompt_tokens rejected_count"
    )
    assert {name.removesuffix("_total") for name in names} >= set(wanted.split())
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert values["active_requests"] == values["kv_cache_used_tokens"] == "0.0"
    finished = float(values['finished_count_total{reason="length"}'])
    assert finished >= 1
    assert float(values["ttft_ms_count"]) == float(values["queue_time_ms_count"]) >= finished
    assert float(values["batch_size_decode_count"]) >= 4
    assert float(values["output_tokens_total"]) >= 5


def test_a_body_that_does_not_come_is_waited_for_no_longer_than_agreed(load: Callable[..., LLM]) -> None:
    async def half_a_body() -> Any:
        yield b'{"prompt": '
        await asyncio.sleep(LIMIT_S)

    with RunningServer(load(), body_patience_s=0.1) as server:

        async def send() -> int:
            headers = {"Content-Type": "application/json"}
            url = f"{server.url}/v1/completions"
            async with aiohttp.ClientSession() as session, session.post(url, data=half_a_body(), headers=headers) as ok:
                return ok.status

        assert asyncio.run(send()) == 408
        wait_until(server.is_quiet)


def test_the_harness_reads_every_service_metric_from_the_servers_own_words(guarded: RunningServer) -> None:
    """All but those that steps which mix prefill and decode do not have, and the gaps between single tokens."""
    read = {reading.metric for reading in read_scrape(_metrics(guarded))}
    for name, metric in SERVER_METRICS.items():
        parts = {f"{name}_sum", f"{name}_count"} if metric.kind == "histogram" else {name}
        assert parts <= read or name in ("itl_ms", "prefill_seconds", "decode_seconds")


def test_bodies_that_do_not_come_take_the_place_of_no_request(load: Callable[..., LLM]) -> None:
    async def scenario(server: RunningServer) -> int:
        port = int(server.url.rpartition(":")[2])
        head = (
            b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n{"
        )
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        for _, writer in idle:
            writer.write(head)
            await writer.drain()
        async with aiohttp.ClientSession() as session:
            status = await _post(session, server, {"prompt": "a", "max_tokens": 1})
        for _, writer in idle:
            writer.close()
        return status

    with RunningServer(load(max_active_requests=1), max_queue=1) as server:
        assert asyncio.run(scenario(server)) == 200
        wait_until(server.is_quiet)


def test_bodies_on_their_way_are_bounded_together() -> None:
    async def never_ends() -> Any:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"x" * 10, "more_body": True}

    async def whole() -> Any:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def scenario() -> None:
        bodies = BodyReader(limit=100, patience_s=LIMIT_S, most_arriving=50)
        with pytest.raises(ApiError, match="the rest of too many large bodies") as refused:
            await bodies.read(never_ends, None)
        assert refused.value.status_code == 503
        assert await bodies.read(whole, "2") == b"{}"
        with pytest.raises(ApiError, match="above this server's limit of 100 bytes"):
            await bodies.read(whole, "101")

    asyncio.run(scenario())
