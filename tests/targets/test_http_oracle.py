"""Metrics of scripted servers against what their scripts imply, through the whole client, exact on a virtual clock."""

from __future__ import annotations

import numpy as np
import pytest
from tests.replay.plans import MS
from tests.targets.wire import Replayed, asked, by_prompt, replay

from quantgate.metrics.goodput_rps import goodput_rps
from quantgate.metrics.registry import pooled_metric, request_metric
from quantgate.metrics.slo_attainment import slo_attainment
from quantgate.metrics.stalls import stalls
from quantgate.targets.openai.wire_script import DONE, WireAnswer, chat_delta, completion, steady, usage

LENGTH = "length"


def values(replayed: Replayed, metric: str) -> dict[str, float]:
    table = replayed.table
    return dict(zip(table.column("request_id").to_pylist(), request_metric(metric)(table).tolist(), strict=True))


def gaps(replayed: Replayed) -> list[float]:
    return pooled_metric("itl_ms")(replayed.table).values.tolist()


def chunk(delay_ms: int, *events: bytes) -> tuple[int, bytes]:
    return delay_ms * MS, b"".join(events)


def ids(*token_ids: int, end: bool = False) -> bytes:
    """A chunk of these tokens."""
    return completion("x" * len(token_ids), token_ids=list(token_ids), finish_reason=LENGTH if end else None)


def test_one_token_a_chunk() -> None:
    """Scheduled at 5 ms, tokens at 35, 45, 65 ms."""
    replayed = replay(steady((30 * MS, 10 * MS, 20 * MS)), asked("a", at_ms=5))
    expected = {
        "ttft_ms": 30.0, "ttft_from_sent_ms": 30.0, "time_to_first_answer_ms": 30.0, "tpot_ms": 15.0,
        "longest_gap_ms": 20.0, "e2e_ms": 60.0, "output_tokens": 3.0, "failed": 0.0, "client_overhead_ms": 0.0,
    }  # fmt: skip
    assert {metric: values(replayed, metric)["a"] for metric in expected} == expected
    assert gaps(replayed) == [10.0, 20.0]


def test_several_tokens_a_chunk_are_several_tokens_at_one_time() -> None:
    """Tokens at 40 (two), 70 (three), 90 ms: TPOT (90 - 40) / 5; a client that counted chunks would say 25."""
    answer = WireAnswer((chunk(40, ids(1, 2)), chunk(30, ids(3, 4, 5)), chunk(20, ids(6, end=True), usage(1, 6), DONE)))
    replayed = replay(answer, asked("a", output_tokens=6))
    assert values(replayed, "ttft_ms") == {"a": 40.0}
    assert values(replayed, "tpot_ms") == {"a": 10.0}
    assert values(replayed, "e2e_ms") == {"a": 90.0}
    assert gaps(replayed) == [0.0, 30.0, 0.0, 0.0, 20.0]
    assert replayed.table.column("counted_by").to_pylist() == ["ids"]


def test_a_burst_of_events_in_one_packet() -> None:
    """Three tokens reach the client together after 60 ms, two more 40 ms later."""
    answer = WireAnswer(
        (
            chunk(60, completion("a"), completion("b"), completion("c")),
            chunk(40, completion("d"), completion("e", finish_reason=LENGTH), usage(1, 5), DONE),
        )
    )
    replayed = replay(answer, asked("a", output_tokens=5))
    assert values(replayed, "ttft_ms") == {"a": 60.0}
    assert values(replayed, "tpot_ms") == {"a": 10.0}
    assert gaps(replayed) == [0.0, 0.0, 40.0, 0.0]


def test_a_character_split_between_packets_is_stamped_when_it_is_whole() -> None:
    """The event's last bytes arrive at 50 ms: before, there is nothing to read."""
    whole = completion("漢🙂", finish_reason=LENGTH) + usage(1, 1) + DONE
    cut = whole.index("🙂".encode()) + 2
    replayed = replay(
        WireAnswer(((30 * MS, whole[:cut]), (20 * MS, whole[cut:]))),
        asked("a", output_tokens=1),
    )
    assert values(replayed, "ttft_ms") == {"a": 50.0}
    assert replayed.seen["a"].text(reasoning=False) == "漢🙂"


def test_reasoning_comes_before_the_answer() -> None:
    """Reasoning at 20 and 30 ms, the answer from 70 ms on."""
    answer = WireAnswer(
        (
            chunk(0, chat_delta(role="assistant", content="")),
            chunk(20, chat_delta(reasoning_content="Let")),
            chunk(10, chat_delta(reasoning_content=" me")),
            chunk(40, chat_delta(content="Yes")),
            chunk(5, chat_delta(LENGTH, content="."), usage(1, 4), DONE),
        )
    )
    replayed = replay(answer, asked("a", output_tokens=4), api="chat")
    assert values(replayed, "ttft_ms") == {"a": 20.0}
    assert values(replayed, "time_to_first_answer_ms") == {"a": 70.0}
    assert values(replayed, "e2e_ms") == {"a": 75.0}


def test_a_model_that_only_reasons_never_answers() -> None:
    parts = (chunk(20, chat_delta(reasoning_content="Hm")), chunk(10, chat_delta(LENGTH), usage(1, 1), DONE))
    replayed = replay(WireAnswer(parts), asked("a"), api="chat")
    assert values(replayed, "ttft_ms") == {"a": 20.0}
    assert values(replayed, "time_to_first_answer_ms") == {"a": np.inf}


def refusing(status: int) -> WireAnswer:
    return WireAnswer(((0, b'{"error": {"message": "no"}}'),), status)


SERVER = {
    "good": steady((100 * MS, 20 * MS, 20 * MS)),
    "late": steady((301 * MS, 20 * MS, 20 * MS)),
    "slow": steady((100 * MS, 50 * MS, 51 * MS)),
    "stall": steady((100 * MS, 5 * MS, 5 * MS, 150 * MS, 5 * MS, 101 * MS, 5 * MS, 5 * MS)),
    "cut": WireAnswer(((100 * MS, completion("a")), (120 * MS, completion("b"))), cut="closed"),
    "429": refusing(429),
    "500": refusing(500),
    "bad": WireAnswer(((100 * MS, completion("a")), (20 * MS, b"data: {oops\n\n"))),
    "last": steady((100 * MS, 20 * MS)),
}
"""One request each, 500 ms apart."""
LIMITS = {"interactive": {"ttft_ms": 300.0, "tpot_ms": 50.0, "longest_gap_ms": 100.0}}


@pytest.fixture(scope="module")
def served() -> Replayed:
    requests = [asked(name, at_ms=500 * index, output_tokens=8) for index, name in enumerate(SERVER)]
    return replay(by_prompt(SERVER), *requests)


def test_times_of_good_and_bad_answers(served: Replayed) -> None:
    nan = np.nan
    expected = {
        #            good   late   slow   stall          cut    429  500  bad    last
        "ttft_ms": [100.0, 301.0, 100.0, 100.0, 100.0, nan, nan, 100.0, 100.0],
        "tpot_ms": [20.0, 20.0, 50.5, 276 / 7, 120.0, nan, nan, nan, 20.0],
        "e2e_ms": [140.0, 341.0, 201.0, 376.0, nan, nan, nan, nan, 120.0],
        "longest_gap_ms": [20.0, 20.0, 51.0, 150.0, 120.0, nan, nan, nan, 20.0],
        "failed": [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0],
    }
    for metric, row in expected.items():
        np.testing.assert_array_equal(list(values(served, metric).values()), row, err_msg=metric)


def test_gaps_are_pooled_over_all_requests(served: Replayed) -> None:
    assert gaps(served) == [20, 20, 20, 20, 50, 51, 5, 5, 150, 5, 101, 5, 5, 120, 20]


def test_stalls_are_gaps_above_the_limit_of_the_class(served: Replayed) -> None:
    assert stalls(served.table, LIMITS).tolist() == [0, 0, 0, 2, 1, 0, 0, 0, 0]
    assert np.isnan(stalls(served.table, {"interactive": {"ttft_ms": 300.0}})).all()


def test_goodput_counts_requests_within_every_limit_and_failures_in_the_denominator(served: Replayed) -> None:
    """Good and last meet all limits; the run lasts from 0 to 4120 ms."""
    assert slo_attainment(served.table, LIMITS).tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert goodput_rps(served.table, LIMITS) == pytest.approx(2 / 4.120, rel=1e-12)


def test_failures_are_counted_by_kind(served: Replayed) -> None:
    kinds = served.table.column("error_kind").to_pylist()
    assert kinds == [None, None, None, None, "early_close", "status_429", "status_5xx", "malformed_event", None]


def test_latency_counts_from_the_schedule_and_never_hides_the_queue() -> None:
    """200 requests at 10 a second on one slot of 500 ms: request i waits for i services less i gaps.

    End to end is 500 + 400 i ms, so that its 99th percentile, at position 0.99 * 199 = 197.01, is 500 + 400 * 197.01.
    A client that waits for its slot and counts from its own sending would say 500 ms.
    """
    requests = [asked(f"r{index:03d}", at_ms=100 * index, output_tokens=1) for index in range(200)]
    replayed = replay(steady((500 * MS,)), *requests, slots=1)
    e2e_ms = list(values(replayed, "e2e_ms").values())
    assert e2e_ms == [500.0 + 400.0 * index for index in range(200)]
    assert np.percentile(e2e_ms, 99) == pytest.approx(500 + 400 * 197.01, rel=1e-12)
    # What the hiding client sees of a request: from the moment its slot is free.
    table = replayed.table
    ends_ms = np.array([times[-1] for times in table.column("token_times_ns").to_pylist()]) / MS
    sent_late_ms = np.concatenate([[0.0], ends_ms[:-1]])
    hidden_ms = ends_ms - np.maximum(sent_late_ms, table.column("scheduled_ns").to_numpy() / MS)
    assert np.percentile(hidden_ms, 99) == 500.0
