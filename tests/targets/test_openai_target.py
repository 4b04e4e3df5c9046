"""The HTTP target: what it sends, how it ends, what it does when servers misbehave."""

from __future__ import annotations

import asyncio

import pytest
from tests.replay.plans import MS
from tests.targets.wire import URL, asked, by_prompt, failing, replay, stream

from quantgate.replay.observation import RequestObservation
from quantgate.targets.openai.scripted_transport import ScriptedTransport, SentRequest
from quantgate.targets.openai.wire_script import (
    DONE,
    WireAnswer,
    chat_delta,
    completion,
    event,
    models,
    steady,
    usage,
)
from quantgate.targets.transfer import ErrorKind, Transfer


def test_an_answer_and_what_is_known_of_its_transfer() -> None:
    replayed = replay(steady((30 * MS, 10 * MS, 20 * MS)), asked("a", at_ms=5))
    seen = replayed.seen["a"]
    assert (seen.end.status, seen.end.finish_reason) == ("finished", "length")
    assert seen.text(reasoning=False) == "w0 w1 w2 "
    assert seen.token_times_ns == [35 * MS, 45 * MS, 65 * MS]
    assert seen.transfer == Transfer(
        attempts=1, http_status=200, prompt_tokens=4, completion_tokens=3, tokens_per_event=(1, 1, 1),
        counted_by="usage", overhead_ns=0,
    )  # fmt: skip
    row = replayed.table.to_pylist()[0]
    assert (row["prompt_tokens"], row["output_tokens"], row["chunks"], row["counted_by"]) == (4, 3, 3, "usage")
    assert (row["attempts"], row["http_status"], row["error_kind"], row["client_overhead_ns"]) == (1, 200, None, 0)


def test_a_slow_reader_leaves_what_it_has_not_read_in_the_socket() -> None:
    slow = asked("a", read_tokens_per_s=20.0)
    replayed = replay(steady((30 * MS, 10 * MS, 20 * MS)), slow, asked("b"))
    assert [(sent.body["prompt"], sent.reads_slowly) for sent in replayed.generations] == [("a", True), ("b", False)]
    assert replayed.seen["a"].token_times_ns == [30 * MS, 80 * MS, 130 * MS]
    told = {row["request_id"]: row["client_overhead_ns"] for row in replayed.table.to_pylist()}
    assert told == {"a": None, "b": 0}


@pytest.mark.parametrize(("details", "cached", "told"), [({"cached_tokens": 3}, 3, True), (None, 0, False)])
def test_cached_tokens_are_what_the_server_says_or_not_told(
    details: dict[str, int] | None, cached: int, told: bool
) -> None:
    counts = event({"choices": [], "usage": {"prompt_tokens": 4, "prompt_tokens_details": details}})
    replayed = replay(stream(completion("a", finish_reason="length"), counts, DONE), asked("a", output_tokens=1))
    row = replayed.table.to_pylist()[0]
    assert (row["cached_prompt_tokens"], row["cached_told"]) == (cached, told)


@pytest.mark.parametrize(
    ("answer", "status", "kind", "http_status", "said"),
    [
        (failing(429), "rejected", "status_429", 429, "too many requests (status 429: no)"),
        (failing(400), "rejected", "status_4xx", 400, "refused the request (status 400: no)"),
        (failing(401), "rejected", "status_4xx", 401, "set OPENAI_API_KEY"),
        (failing(500), "failed", "status_5xx", 500, "the server failed (status 500: no)"),
        (failing(302), "failed", "malformed_event", 302, "points elsewhere"),
        (WireAnswer(refused="connect_timeout"), "failed", "connect", None, "no connection within"),
        (WireAnswer(refused="read_timeout"), "failed", "timeout", None, "silent"),
        (stream(completion("a"), cut=True), "failed", "early_close", 200, "before its answer was whole"),
        (stream(completion("a")), "failed", "early_close", 200, "before its answer was whole"),
        (stream(completion("a"), b"data: {\n\n"), "failed", "malformed_event", 200, "(it is no JSON)"),
        (stream(completion("a"), event({"error": "oom"})), "failed", "server_error", 200, "(oom)"),
        (stream(completion("a", finish_reason="abort"), DONE), "failed", "server_error", 200, "gave the request up"),
    ],
)
def test_each_way_to_fail_has_its_kind_and_its_sentence(
    answer: WireAnswer, status: str, kind: ErrorKind, http_status: int | None, said: str
) -> None:
    seen = replay(answer, asked("a")).seen["a"]
    assert seen.transfer is not None
    assert (seen.end.status, seen.transfer.error_kind, seen.transfer.http_status) == (status, kind, http_status)
    assert seen.end.error is not None
    assert said in seen.end.error
    assert seen.end.error.startswith(f"{URL}/v1/completions: ")
    assert seen.transfer.attempts == 1
    assert len(seen.token_times_ns) == (1 if http_status == 200 else 0)


class _Flaky:
    """Fails as scripted, then serves."""

    def __init__(self, *failures: WireAnswer) -> None:
        self._left = list(failures)

    def __call__(self, request: SentRequest) -> WireAnswer:
        return self._left.pop(0) if self._left else steady((10 * MS, 10 * MS))


def test_no_request_is_sent_twice_unless_that_is_allowed() -> None:
    replayed = replay(_Flaky(failing(503)), asked("a"))
    assert replayed.seen["a"].end.status == "failed"
    assert len(replayed.generations) == 1


def test_retries_are_counted_and_their_time_is_in_the_ttft() -> None:
    """503 at once, half a second of wait, refused, one second, 429 with Retry-After of two seconds, 10 ms."""
    flaky = _Flaky(failing(503), WireAnswer(refused="refused"), failing(429, **{"retry-after": "2"}))
    # The refused connection makes the client ask whether the server lives, which takes no time here.
    replayed = replay(flaky, asked("a"), max_retries=3)
    seen = replayed.seen["a"]
    assert seen.end.status == "finished"
    assert seen.transfer is not None
    assert seen.transfer.attempts == 4
    assert seen.token_times_ns[0] - seen.scheduled_ns == (500 + 1000 + 2000 + 10) * MS


def test_retries_run_out() -> None:
    replayed = replay(lambda request: failing(503), asked("a"), max_retries=2)
    transfer = replayed.seen["a"].transfer
    assert transfer is not None
    assert (transfer.attempts, transfer.error_kind, len(replayed.generations)) == (3, "status_5xx", 3)


def test_a_client_that_gives_up_while_waiting_to_retry_has_its_attempts_on_record() -> None:
    seen = replay(lambda request: failing(503), asked("a"), max_retries=5, timeout_ms=2000).seen["a"]
    assert (seen.end.abort_cause, seen.transfer) == ("timeout", Transfer(3, 503, "status_5xx"))


@pytest.mark.parametrize("answer", [failing(400), stream(completion("a"), cut=True)])
def test_a_refusal_and_an_answer_that_had_begun_are_never_tried_again(answer: WireAnswer) -> None:
    replayed = replay(_Flaky(answer), asked("a"), max_retries=5)
    assert replayed.seen["a"].end.status in ("failed", "rejected")
    assert len(replayed.generations) == 1


def test_a_disconnect_closes_the_connection_at_that_very_token() -> None:
    request = asked("a", output_tokens=5, disconnect_after_tokens=2)
    replayed = replay(steady((10 * MS,) * 5), request)
    seen = replayed.seen["a"]
    assert (seen.end.status, seen.end.abort_cause) == ("aborted", "disconnect")
    assert replayed.transport is not None
    assert replayed.transport.disconnects == [20 * MS]
    assert (len(seen.token_times_ns), seen.counted_by) == (2, "chunks")


def test_a_disconnect_counts_tokens_and_not_chunks_where_the_server_sends_their_ids() -> None:
    parts = tuple((10 * MS, completion("ab", token_ids=[7, 8])) for _ in range(3))
    seen = replay(WireAnswer(parts), asked("a", output_tokens=6, disconnect_after_tokens=4)).seen["a"]
    assert seen.token_ids == [7, 8, 7, 8]
    assert (seen.token_times_ns, seen.counted_by) == ([10 * MS] * 2 + [20 * MS] * 2, "ids")


def test_a_timeout_closes_the_connection() -> None:
    replayed = replay(steady((10 * MS, 500 * MS)), asked("a"), timeout_ms=100)
    assert replayed.seen["a"].end.abort_cause == "timeout"
    assert replayed.transport is not None
    assert replayed.transport.disconnects == [100 * MS]


def test_hundreds_of_requests_in_flight_never_wait_for_each_other() -> None:
    requests = [asked(f"r{index}") for index in range(500)]
    seen = replay(steady((1000 * MS, 10 * MS)), *requests, slots=500).seen
    assert {tuple(one.token_times_ns) for one in seen.values()} == {(1000 * MS, 1010 * MS)}


def test_one_refused_connection_is_no_death() -> None:
    answers = {"a": WireAnswer(refused="refused"), "b": steady((10 * MS,))}
    replayed = replay(by_prompt(answers), asked("a"), asked("b", at_ms=50))
    assert replayed.gone is None
    assert replayed.seen["a"].end.status == "failed"
    assert replayed.seen["b"].end.status == "finished"


def test_a_dead_server_ends_the_replay_with_one_sentence() -> None:
    dead = {"is": False}

    async def die(transport: ScriptedTransport) -> None:
        await asyncio.sleep(0.015)
        dead["is"] = True

    def answer(request: SentRequest) -> WireAnswer:
        if dead["is"]:
            return WireAnswer(refused="refused")
        return WireAnswer(((10 * MS, completion("a")), (10 * MS, b"")), cut="closed")

    replayed = replay(
        answer,
        asked("a"),
        asked("b"),
        asked("c", at_ms=5000),
        ask=lambda request: WireAnswer(refused="refused") if dead["is"] else models("tiny"),
        meanwhile=die,
    )
    assert str(replayed.gone) == (
        f"{URL}: the server is gone, it takes no more connections after 3 answers; look at its log (the last failure "
        f"was: {URL}/v1/completions: the server closed the connection before its answer was whole; look at its log)."
    )
    assert replayed.transport is not None
    # Both requests broke together and shared the three checks.
    assert sum(request.method == "GET" for request in replayed.transport.sent) == 1 + 3


def test_a_server_that_is_back_within_the_checks_is_alive() -> None:
    refusals = iter([WireAnswer(refused="refused")] * 2)
    questions = iter([models("tiny"), *refusals])
    answers = {"a": WireAnswer(refused="refused")}
    replayed = replay(by_prompt(answers), asked("a"), ask=lambda request: next(questions, models("tiny")))
    assert replayed.gone is None
    assert replayed.seen["a"].end.status == "failed"
    assert replayed.seen["a"].ended_ns == 1000 * MS


def test_the_description_is_what_the_server_tells() -> None:
    build = {
        "scheme": "int4-g64", "kv_dtype": "bfloat16", "compute_dtype": "float32", "head_dtype": "bfloat16",
        "weight_bytes": 100, "linear_weight_bytes": 80, "load_seconds": 1.5, "kernel_set": "cpu",
        "kernel_paths": {"norm": "cpu"}, "tokenizer_sha256": "ab", "weights_sha256": "cd",
    }  # fmt: skip

    def ask(request: SentRequest) -> WireAnswer:
        if request.url.endswith("/version"):
            return WireAnswer(((0, b'{"version": "0.1.0"}'),))
        return models("tiny", quantgate=build)

    target = replay(steady((MS,)), asked("a"), ask=ask).target
    assert target is not None
    told = target.description
    assert (told.model, told.scheme, told.weight_bytes, told.load_seconds) == ("tiny", "int4-g64", 100, 1.5)
    assert told.server == "quantgate 0.1.0"
    assert told.target == "OpenAI-compatible server"
    assert told.notes == (f"served at {URL}",)


def test_what_a_server_does_not_tell_is_unknown() -> None:
    target = replay(steady((MS,)), asked("a"), ask=lambda request: models("tiny", owned_by="someone")).target
    assert target is not None
    told = target.description
    assert (told.scheme, told.weight_bytes, told.kernel_paths, told.server) == ("unknown", None, {}, "someone")


def test_reasoning_is_not_the_answer() -> None:
    parts = (chat_delta(reasoning_content="Hm"), chat_delta(content="Yes"), chat_delta("stop"), usage(3, 3), DONE)
    seen: RequestObservation = replay(stream(*parts), asked("a"), api="chat").seen["a"]
    assert (seen.text(reasoning=True), seen.text(reasoning=False)) == ("Hm", "Yes")
    assert (seen.token_times_ns, seen.first_answer_ns) == ([10 * MS, 20 * MS], 20 * MS)
