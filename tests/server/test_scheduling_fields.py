"""What a request may say of its scheduling reaches the engine, and what the engine saved or refused is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
from tests.server.held_engine import HeldEngine
from tests.server.requests import GREEDY
from tests.server.running import LIMIT_S, RunningServer, wait_until

from quantgate_engine import LLM
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.router.over_model import pools_over
from quantgate_engine.router.router_core import RouterCore
from quantgate_engine.router.settings import PoolRule, PoolSettings, TokenRange
from quantgate_engine.scheduler.admission.settings import AdmissionSettings

PROMPT = "forty-two bytes of a prompt to be computed"
FREELY: dict[str, Any] = {"max_tokens": 6, "extra_body": {"ignore_eos": True}}
assert len(PROMPT) == 42


@pytest.fixture
def terms_seen(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> list[RequestTerms]:
    """Of every request that reaches the engine."""
    seen: list[RequestTerms] = []
    add_request = server.llm.core.add_request

    def add(request_id: str, prompt: Any, params: Any, terms: RequestTerms) -> Any:
        seen.append(terms)
        return add_request(request_id, prompt, params, terms)

    monkeypatch.setattr(server.llm.core, "add_request", add)
    return seen


@pytest.fixture(scope="module")
def sharing(load: Callable[..., LLM]) -> Iterator[RunningServer]:
    with RunningServer(load(cache=CacheSettings(prefix_sharing=True))) as running:
        yield running


def _post(server: RunningServer, path: str = "completions", **body: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/{path}", json={"prompt": "a", "max_tokens": 2} | body, timeout=LIMIT_S)


def test_the_fields_reach_the_engine(server: RunningServer, terms_seen: list[RequestTerms]) -> None:
    fields = {"slo_class": "batch", "session_id": "s", "cache_salt": "pepper", "timeout_s": 5}
    assert _post(server, **fields).status_code == 200
    assert _post(server, timeout_s=1e6).status_code == 200
    messages = [{"role": "user", "content": "a"}]
    assert _post(server, "chat/completions", messages=messages, slo_class="interactive").status_code == 200
    limit = server.service.settings.request_timeout_s
    assert terms_seen == [
        RequestTerms(slo_class="batch", timeout_s=5.0, session_id="s", cache_salt="pepper"),
        RequestTerms(timeout_s=limit),
        RequestTerms(slo_class="interactive", timeout_s=limit),
    ]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("slo_class", "urgent", "slo_class is 'urgent'; expected one of interactive, batch."),
        ("slo_class", 3, "slo_class: Input should be a valid string."),
        ("timeout_s", 0, "timeout_s: Input should be greater than 0."),
        ("session_id", "", "session_id: String should have at least 1 character."),
    ],
)
def test_what_they_cannot_be_is_told(server: RunningServer, field: str, value: Any, message: str) -> None:
    answer = _post(server, **{field: value})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["message"]) == (400, field, message)


def test_the_classes_are_listed(client: openai.OpenAI) -> None:
    assert client.models.retrieve("tiny").model_dump()["quantgate"]["slo_classes"] == ["interactive", "batch"]


def test_a_prompt_is_computed_once_for_all_its_choices(server: RunningServer, client: openai.OpenAI) -> None:
    """But for its last token, whose logits every choice draws from."""
    before = server.llm.core.totals
    computed, cached = before.prefill_tokens, before.cached_prompt_tokens
    answer = client.completions.create(prompt=PROMPT, n=3, **FREELY, **GREEDY)
    after = server.llm.core.totals
    assert after.prefill_tokens - computed == 42 + 2
    assert after.cached_prompt_tokens - cached == 2 * 41
    [text] = {choice.text for choice in answer.choices}
    assert text == client.completions.create(prompt=PROMPT, **FREELY, **GREEDY).choices[0].text
    # Nothing of the prompt had been computed before the request came.
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 42
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 0


def test_cached_tokens_are_told_for_each_prompt_once(sharing: RunningServer) -> None:
    """Blocks hold four tokens: of 42, ten blocks are full and found again."""
    arguments: dict[str, Any] = {"prompt": [PROMPT, "98765 43210"], "n": 2, "stream": True} | FREELY | GREEDY
    told = []
    with openai.OpenAI(base_url=f"{sharing.url}/v1", api_key="none", max_retries=0, timeout=LIMIT_S) as client:
        for extra in ({}, {}, {"cache_salt": "other"}):
            body = {"extra_body": FREELY["extra_body"] | extra, "stream_options": {"include_usage": True}}
            with client.completions.create(**(arguments | body)) as stream:
                usage = list(stream)[-1].usage
            assert usage is not None
            assert usage.prompt_tokens_details is not None
            told.append((usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens))
    assert told == [(53, 0), (53, 40 + 8), (53, 0)]


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_given_up_after_its_own_time(load: Callable[..., LLM], stream: bool) -> None:
    llm = load()
    held = HeldEngine(llm)
    with RunningServer(llm) as server, ThreadPoolExecutor(2) as pool:
        patient = pool.submit(_post, server, max_tokens=3)
        assert held.entered.wait(LIMIT_S)
        hasty = pool.submit(_post, server, max_tokens=3, timeout_s=0.001, stream=stream)
        wait_until(lambda: len(llm.core._requests) == 2)
        threading.Event().wait(0.01)
        held.release()
        assert patient.result().status_code == 200
        assert hasty.result().status_code == 408
        error = hasty.result().json()["error"]
        assert (error["code"], error["param"]) == ("timeout", "timeout_s")
        assert "longer than its own timeout_s of 0.001 s" in error["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_without_room_is_told_to_come_again_and_counted(load: Callable[..., LLM], stream: bool) -> None:
    llm = load(max_active_requests=1, admission=AdmissionSettings(over_cap="reject"))
    held = HeldEngine(llm)
    with RunningServer(llm) as server, ThreadPoolExecutor(2) as pool:
        first = pool.submit(_post, server)
        assert held.entered.wait(LIMIT_S)
        second = pool.submit(_post, server, stream=stream)
        wait_until(lambda: len(llm.core._requests) == 2)
        held.release()
        assert first.result().status_code == 200
        answer = second.result()
        assert "max_active_requests" in answer.text
        assert "; send it again later." in answer.text
        assert '"code":"no_room"' in answer.text.replace(": ", ":")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        metrics = httpx.get(f"{server.url}/metrics").text
        assert 'rejected_count_total{reason="no_room"} 1.0' in metrics
        assert llm.core.totals.rejected_count == 1


def test_pools_serve_behind_one_address(load: Callable[..., LLM]) -> None:
    llm = load()
    short = PoolSettings("short", llm.config, rule=PoolRule(prompt_tokens=TokenRange(most=8)))
    core = RouterCore(pools_over(llm, [short, PoolSettings("long", llm.config)]))
    with RunningServer(llm, core=core) as server:
        for prompt in ("a", PROMPT):
            assert _post(server, prompt=prompt).status_code == 200
        assert [pool.core.totals.prefill_tokens for pool in core.pools] == [1, 42]
        assert server.service.engine.max_active_requests == 2 * llm.config.max_active_requests
        [entry] = httpx.get(f"{server.url}/v1/models").json()["data"]
        assert [(pool["name"], pool["takes"]) for pool in entry["quantgate"]["pools"]] == [
            ("short", "any class with 0 to 8 prompt and 0 or more output tokens"),
            ("long", "any class with 0 or more prompt and 0 or more output tokens"),
        ]
        metrics = httpx.get(f"{server.url}/metrics").text
        for pool in ("short", "long"):
            assert f'pool_active_requests{{pool="{pool}"}} 0.0' in metrics
            assert f'pool_kv_cache_pool_usage{{pool="{pool}"}} 0.0' in metrics


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_that_is_too_long_loses_its_oldest_turns_and_says_so(load: Callable[..., LLM], stream: bool) -> None:
    """System prompt 5 tokens, first turn 21 + 11, last turn 9, and one that opens the answer: 47 of at most 40."""
    admission = AdmissionSettings(over_cap="degrade", min_output_tokens=4)
    llm = load(max_context_tokens=40, admission=admission)
    chat = [
        {"role": "system", "content": "s" * 4},
        {"role": "user", "content": "a" * 20},
        {"role": "assistant", "content": "b" * 10},
        {"role": "user", "content": "c" * 8},
    ]
    with RunningServer(llm) as server:
        fields = {"ignore_eos": True, "temperature": 0, "max_tokens": 6, "stream": stream}
        answer = _post(server, "chat/completions", messages=chat, **fields)
        assert answer.status_code == 200
        assert '"degraded":"the oldest 32 prompt tokens were left out"' in answer.text
        assert llm.core.totals.prefill_tokens == 5 + 9 + 1
        if not stream:
            kept = _post(server, "chat/completions", messages=[chat[0], chat[3]], **fields)
            assert "degraded" not in kept.text
            assert answer.json()["usage"] == kept.json()["usage"]
            assert answer.json()["choices"][0]["message"] == kept.json()["choices"][0]["message"]


def _chat(*lengths: int) -> list[dict[str, str]]:
    return [{"role": ("assistant", "user")[number % 2], "content": "x" * length} for number, length in
        enumerate(lengths, start=1)]  # fmt: skip


@pytest.mark.parametrize(
    ("lengths", "output_tokens", "degraded"),
    [
        ((20, 10, 8), 40 - 10, "the oldest 32 prompt tokens were left out"),
        ((10, 9, 14), 40 - 16, "the oldest 21 prompt tokens were left out"),
        ((5, 5, 5), 40 - 19, None),
        ((36,), 40 - 38, None),
    ],
)
def test_a_chat_without_a_limit_gets_the_room_that_degrading_leaves(
    load: Callable[..., LLM], lengths: tuple[int, ...], output_tokens: int, degraded: str | None
) -> None:
    """A message takes one token more than its text, and one opens the answer: 42 and 37 of 40, and at least 4 to draw.

    A lone turn that leaves fewer has nothing to leave out: it gets those that there are.
    """
    llm = load(max_context_tokens=40, admission=AdmissionSettings(over_cap="degrade", min_output_tokens=4))
    with RunningServer(llm) as server:
        answer = _post(server, "chat/completions", messages=_chat(*lengths), ignore_eos=True, max_tokens=None).json()
        assert answer["choices"][0].get("degraded") == degraded
        assert answer["usage"]["completion_tokens"] == output_tokens
        assert answer["usage"]["total_tokens"] == 40


def test_a_small_pool_shortens_the_default_and_the_length_that_is_told(load: Callable[..., LLM]) -> None:
    with RunningServer(load(num_kv_blocks=12, block_size=4)) as server:
        [entry] = httpx.get(f"{server.url}/v1/models").json()["data"]
        assert entry["max_model_len"] == 12 * 4 + 1
        answer = _post(server, "chat/completions", messages=_chat(10), ignore_eos=True, max_tokens=None).json()
        assert answer["usage"]["total_tokens"] == 12 * 4 + 1


def test_a_pools_rule_bounds_the_default_where_no_other_pool_takes_the_chat(load: Callable[..., LLM]) -> None:
    llm = load()
    short = PoolSettings("short", llm.config, rule=PoolRule(output_tokens=TokenRange(most=8)))
    with RunningServer(llm, core=RouterCore(pools_over(llm, [short]))) as server:
        answer = _post(server, "chat/completions", messages=_chat(3), ignore_eos=True, max_tokens=None).json()
        assert answer["usage"]["completion_tokens"] == 8


def test_a_pool_that_degrades_behind_one_that_does_not_knows_the_turns_too(load: Callable[..., LLM]) -> None:
    llm = load(max_context_tokens=40)
    cutting = replace(llm.config, admission=AdmissionSettings(over_cap="degrade", min_output_tokens=4))
    core = RouterCore(pools_over(llm, [PoolSettings("whole", llm.config), PoolSettings("cutting", cutting)]))
    with RunningServer(llm, core=core) as server:
        answer = _post(server, "chat/completions", messages=_chat(20, 10, 8), ignore_eos=True, max_tokens=None).json()
        assert answer["choices"][0]["degraded"] == "the oldest 32 prompt tokens were left out"
