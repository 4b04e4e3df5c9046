"""The names of each server become ours, in our units."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server_metrics import expositions

from quantgate.server_metrics.exposition import ExpositionError
from quantgate.server_metrics.metric import OTHER, SERVER_METRICS
from quantgate.server_metrics.scrape import OTHER_LIMIT, read_scrape
from quantgate.server_metrics.servers.registry import KNOWN_SERVERS, recognise


def values(text: str) -> dict[str, list[float]]:
    """Our name -> values, in the order of the text."""
    found: dict[str, list[float]] = {}
    for reading in read_scrape(text):
        found.setdefault(reading.metric, []).append(reading.value)
    return found


def test_vllm() -> None:
    assert values(expositions.VLLM) == {
        "active_requests": [3.0, 2.0],
        "waiting_requests": [7.0],
        # Of the two names for one thing the present one counts.
        "kv_cache_pool_usage": [0.25],
        "queue_time_ms_sum": [2500.0],
        "queue_time_ms_count": [8.0],
        "prompt_tokens": [1000.0],
        "cached_prompt_tokens": [160.0],
        "preemption_count": [4.0],
        "request_abort_count": [2.0],
    }


def test_vllm_of_an_older_version() -> None:
    older = expositions.VLLM.replace("vllm:kv_cache_usage_perc", "vllm:something_else")
    assert values(older)["kv_cache_pool_usage"] == [0.5]


def test_sglang() -> None:
    assert values(expositions.SGLANG) == {
        "active_requests": [6.0],
        "kv_cache_used_tokens": [123859.0],
        "kv_cache_pool_usage": [0.28],
        "itl_ms_sum": [3000.0],
        "itl_ms_count": [200.0],
        "cached_prompt_tokens": [40.0, 2.0],
        "prefill_tokens": [700.0],
        "preemption_count": [9.0],
    }


def test_llama_cpp() -> None:
    assert values(expositions.LLAMA_CPP) == {
        "active_requests": [4.0],
        "waiting_requests": [1.0],
        "prefill_tokens": [6886.0],
        "output_tokens": [3469.0],
        "prefill_seconds": [29.03],
        "decode_seconds": [35.44],
    }


def test_tgi() -> None:
    assert values(expositions.TGI) == {
        "active_requests": [8.0],
        "waiting_requests": [5.0],
        "queue_time_ms_sum": [12650.0],
        "queue_time_ms_count": [253.0],
        "prompt_tokens": [32384.0],
    }


def test_our_own_server_needs_no_translation() -> None:
    assert values(expositions.QUANTGATE) == {
        "active_requests": [2.0],
        "kv_cache_block_utilization": [0.75],
        "queue_time_ms_sum": [250.0],
        "queue_time_ms_count": [10.0],
        "request_abort_count": [1.0, 4.0],
    }


def test_the_labels_and_the_servers_name_are_kept() -> None:
    readings = {reading.metric: reading for reading in read_scrape(expositions.VLLM)}
    aborted = readings["request_abort_count"]
    assert aborted.server_name == "vllm:request_success"
    assert json.loads(aborted.labels) == {"engine": "0", "finished_reason": "abort", "model_name": "m"}
    assert (aborted.grows, readings["active_requests"].grows) == (True, False)


def test_a_server_that_nobody_knows_keeps_its_names() -> None:
    readings = read_scrape(expositions.UNKNOWN)
    assert {reading.metric for reading in readings} == {OTHER}
    assert [(reading.server_name, reading.value, reading.grows) for reading in readings] == [
        ("my_queue", 3.0, False),
        ("my_seconds_count", 4.0, True),
        ("my_seconds_sum", 9.0, True),
        ("my_tokens", 30.0, True),
        ("untyped_thing", 5.0, False),
    ]


def test_of_very_many_unknown_names_a_bounded_number_is_kept() -> None:
    text = "".join(f'thing{{number="{index:04d}"}} 1\n' for index in range(10 * OTHER_LIMIT))
    assert len(read_scrape(text)) == OTHER_LIMIT


@pytest.mark.parametrize(
    "text", ["<html><body>404</body></html>", '{"error": 1}', "# TYPE a gauge\na one\n", 'a{b="c 1']
)
def test_what_is_no_exposition_is_refused_in_one_way(text: str) -> None:
    with pytest.raises(ExpositionError, match="not Prometheus' text format"):
        read_scrape(text)


@given(st.text())
def test_no_text_breaks_it_in_another_way(text: str) -> None:
    with suppress(ExpositionError):
        read_scrape(text)


def test_nothing_is_an_exposition_of_nothing() -> None:
    assert read_scrape("") == []


def test_the_tables_name_our_metrics_and_no_two_servers_share_a_prefix() -> None:
    for server in KNOWN_SERVERS:
        assert {theirs.ours for theirs in server.names} <= SERVER_METRICS.keys()
        others = [other for other in KNOWN_SERVERS if other is not server]
        assert not any(theirs.name.startswith(other.prefix) for theirs in server.names for other in others if
                       server.server != "quantgate")  # fmt: skip
        assert recognise([server.prefix + "x"]) is server
    assert recognise(["http_requests"]) is None
