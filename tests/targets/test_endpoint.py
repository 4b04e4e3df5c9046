"""The client of one server: what it sends, and the sentence for each way to fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import ValidationError

from quantgate.problem import first_problem
from quantgate.targets.openai.endpoint import Endpoint, EndpointError
from quantgate.targets.openai.scripted_transport import ScriptedTransport, SentRequest
from quantgate.targets.openai.server_facts import ServerFacts, ask_server
from quantgate.targets.openai.settings import EndpointSettings
from quantgate.targets.openai.transport import Breakage
from quantgate.targets.openai.wire_script import WireAnswer, models
from quantgate_engine.clock import VirtualClock

URL = "http://server:8000"
KEY = "sk-very-secret"


def call(
    answer: WireAnswer | Callable[[SentRequest], WireAnswer],
    use: Callable[[Endpoint], Awaitable[Any]],
    environment: dict[str, str] | None = None,
    **settings: Any,
) -> tuple[Any, list[SentRequest]]:
    script = (lambda request: answer) if isinstance(answer, WireAnswer) else answer
    transport = ScriptedTransport(script, VirtualClock())

    async def main() -> Any:
        endpoint = Endpoint(EndpointSettings(url=URL, **settings), transport=transport, environment=environment or {})
        async with endpoint:
            return await use(endpoint)

    result = asyncio.run(main())
    assert transport.in_flight == 0
    return result, transport.sent


def whole(body: bytes, status: int = 200, **headers: str) -> WireAnswer:
    return WireAnswer(((0, body[:3]), (0, body[3:])), status, headers)


def test_answers_in_every_form() -> None:
    assert call(whole(b'{"a": 1}'), lambda e: e.get_json("/x"))[0] == {"a": 1}
    assert call(whole("é x".encode()), lambda e: e.get_text("/metrics"))[0] == "é x"
    assert call(whole(b"\x00\xff\x01\x02"), lambda e: e.post_bytes("/x", {}))[0] == b"\x00\xff\x01\x02"
    result, sent = call(whole(b"[1, 2]"), lambda e: e.post_json("/v1/completions", {"prompt": [1, 2], "é": "漢"}))
    assert result == [1, 2]
    assert (sent[0].method, sent[0].url) == ("POST", f"{URL}/v1/completions")
    assert sent[0].body == {"prompt": [1, 2], "é": "漢"}
    assert sent[0].headers["Content-Type"] == "application/json"


def test_the_key_comes_from_the_environment_variable_that_the_settings_name() -> None:
    _, sent = call(whole(b"{}"), lambda e: e.get_json("/x"), {"MY_KEY": KEY}, key_env="MY_KEY")
    assert sent[0].headers["Authorization"] == f"Bearer {KEY}"
    for environment in ({}, {"OTHER": KEY}, {"OPENAI_API_KEY": " "}):
        _, sent = call(whole(b"{}"), lambda e: e.get_json("/x"), environment)
        assert "Authorization" not in sent[0].headers


def failure(answer: WireAnswer, environment: dict[str, str] | None = None) -> EndpointError:
    with pytest.raises(EndpointError) as raised:
        call(answer, lambda e: e.get_json("/v1/models"), environment)
    assert KEY not in str(raised.value)
    assert "\n" not in str(raised.value)
    return raised.value


@pytest.mark.parametrize(
    ("breakage", "kind", "said"),
    [
        ("unknown_host", "connect", "there is no host of this name"),
        ("refused", "connect", "nothing listens there"),
        ("unreachable", "connect", "cannot be reached"),
        ("connect_timeout", "connect", "no connection within connect_timeout_s"),
        ("tls", "connect", "no secure connection"),
        ("read_timeout", "timeout", "silent for read_timeout_s"),
        ("closed", "early_close", "closed the connection"),
        ("invalid", "malformed_event", "does not speak HTTP"),
        ("compressed", "malformed_event", "turn compression off"),
    ],
)
def test_each_broken_connection_has_its_sentence(breakage: Breakage, kind: str, said: str) -> None:
    error = failure(WireAnswer(refused=breakage))
    assert (error.kind, error.status, error.breakage) == (kind, None, breakage)
    assert str(error).startswith(f"{URL}/v1/models: ")
    assert said in str(error)
    assert error.exit_code == (2 if breakage == "unknown_host" else 3)


def test_an_answer_that_breaks_off_is_an_early_close() -> None:
    error = failure(WireAnswer(((0, b'{"data"'),), cut="closed"))
    assert error.kind == "early_close"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "bad thing.", "type": "x"}}', "(status 400: bad thing)"),
        (b'{"error": "bad\\nthing"}', "(status 400: bad thing)"),
        (b'{"detail": "bad thing"}', "(status 400: bad thing)"),
        (b'{"detail": [{"msg": "bad thing", "input": "the whole prompt"}]}', "(status 400: bad thing)"),
        (b'{"unknown": "the whole prompt"}', "(status 400)"),
        (b"bad thing", "(status 400: bad thing)"),
        (b"<html>bad</html>", "(status 400)"),
        (b"<html><TITLE>502 Bad\nGateway &amp; more</TITLE></html>", "(status 400: 502 Bad Gateway & more)"),
        (b"", "(status 400)"),
        (b'{"error": "' + b"x" * 300 + b'"}', "x" * 197 + "...)"),
        (b'{"error": "{braces} \\u001b[31m"}', "(status 400: {braces} [31m)"),
        (b'{"error":' * 300 + b'"bad thing"' + b"}" * 300, "(status 400: bad thing)"),
        (b'{"error":' * 300, '(status 400: {"error":{"error":'),
    ],
)
def test_the_servers_own_words_are_quoted_in_one_line(body: bytes, said: str) -> None:
    assert said in str(failure(whole(body, 400)))


def test_a_refused_key_and_a_missing_key_are_told_apart() -> None:
    body = json.dumps({"error": {"message": f"Incorrect API key: {KEY}"}}).encode()
    refused = str(failure(whole(body, 401), {"OPENAI_API_KEY": KEY}))
    assert "the API key in OPENAI_API_KEY is not accepted (status 401: Incorrect API key: [API key])" in refused
    missing = str(failure(whole(b"", 403)))
    assert failure(whole(body, 401), {"OPENAI_API_KEY": KEY}).exit_code == failure(whole(b"", 403)).exit_code == 2
    assert "an API key is needed, OPENAI_API_KEY is not set (status 403); set OPENAI_API_KEY" in missing


def test_a_key_that_no_header_can_carry_is_refused_without_being_shown() -> None:
    with pytest.raises(EndpointError, match="OPENAI_API_KEY holds characters that no API key has") as raised:
        call(whole(b""), lambda e: e.get_json("/x"), {"OPENAI_API_KEY": KEY + "\nX: y"})
    assert raised.value.exit_code == 2
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (404, "status_4xx", "no such path or model"),
        (413, "status_4xx", "too large"),
        (418, "status_4xx", "refused the request"),
        (429, "status_429", "too many requests"),
        (500, "status_5xx", "the server failed"),
        (503, "status_5xx", "the server failed"),
        (307, "malformed_event", "points elsewhere"),
        (204, "malformed_event", "not that of a whole answer"),
    ],
)
def test_each_status_has_its_sentence(status: int, kind: str, said: str) -> None:
    error = failure(whole(b"", status))
    assert (error.kind, error.status) == (kind, status)
    assert said in str(error)


def test_a_redirect_says_where_it_points() -> None:
    error = failure(whole(b"", 301, location="https://server/v1/models"))
    assert "points elsewhere (status 301: to https://server/v1/models); give the URL" in str(error)


@pytest.mark.parametrize(("header", "seconds"), [("2", 2.0), ("0.5", 0.5), ("Wed, 21 Oct", None), ("-1", None)])
def test_how_long_to_wait_is_read_from_the_header(header: str, seconds: float | None) -> None:
    assert failure(whole(b"", 429, **{"retry-after": header})).retry_after_s == seconds


@pytest.mark.parametrize(
    ("body", "what"), [(b"<html>", "a web page"), (b"hello", "no JSON"), (b"[" * 100_000, "no JSON")]
)
def test_an_answer_that_is_no_api_is_told(body: bytes, what: str) -> None:
    assert f"not that of an OpenAI-compatible API ({what})" in str(failure(whole(body)))


def facts(answer: WireAnswer, **settings: Any) -> ServerFacts:
    result, _ = call(answer, ask_server, **settings)
    assert isinstance(result, ServerFacts)
    return result


def test_the_only_model_is_asked_and_a_choice_is_demanded_among_several() -> None:
    assert facts(models("one")).model == "one"
    assert facts(models("one", "two"), model="two").model == "two"
    with pytest.raises(EndpointError, match=r"offers 2 models; name one of them .*--model.*: one, two"):
        facts(models("one", "two"))
    with pytest.raises(EndpointError, match=r"does not offer the model 'three'; expected one of .*--model.*: one, two"):
        facts(models("one", "two"), model="three")
    with pytest.raises(EndpointError, match="lists no model"):
        facts(whole(b"{}"))


def test_a_server_without_a_list_of_models_is_asked_by_name() -> None:
    assert facts(whole(b"", 404), model="mine").model == "mine"
    with pytest.raises(EndpointError, match="no such path or model"):
        facts(whole(b"", 404))


def test_the_servers_version_is_asked_where_its_kind_is_known() -> None:
    def script(request: SentRequest) -> WireAnswer:
        return models("m", owned_by="vllm") if request.url.endswith("/models") else whole(b'{"version": "0.30"}')

    result, _ = call(script, ask_server)
    assert result.server == "vllm 0.30"


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://localhost:8000/", "http://localhost:8000"),
        ("http://localhost:8000/v1", "http://localhost:8000"),
        (" http://localhost:8000/v1/ ", "http://localhost:8000"),
        ("https://host/openai/v1", "https://host/openai"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
    ],
)
def test_the_root_of_a_url(given: str, root: str) -> None:
    assert EndpointSettings(url=given).url == root


def problem(**settings: Any) -> str:
    with pytest.raises(ValidationError) as raised:
        EndpointSettings.model_validate(settings)
    return first_problem(raised.value, settings, EndpointSettings).sentence("arm")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost:8000", "is no http or https URL; expected one such as http://localhost:8000"),
        ("ftp://host", "is no http or https URL"),
        ("http://", "is no http or https URL"),
        ("http://host:port", "is no URL"),
        ("http://host/?a=1", "has a query or fragment"),
        ("http://me:secret@host", "user name or password"),
    ],
)
def test_a_url_that_cannot_be_used_is_told_without_secrets(url: str, said: str) -> None:
    sentence = problem(url=url)
    assert said in sentence
    assert sentence.startswith("arm, field url: ")
    assert "secret" not in sentence


@pytest.mark.parametrize("field", ["connect_timeout_s", "read_timeout_s"])
def test_a_timeout_has_an_end(field: str) -> None:
    assert problem(url=URL, **{field: float("inf")}) == f"arm, field {field}: expected a finite number, got inf."


def test_the_settings_leave_the_traffic_alone() -> None:
    assert "stream is set by the replay itself" in problem(url=URL, extra_body={"stream": False})
    assert "does not take a prompt as messages" in problem(url=URL, api="completions", prompt_as="messages")
    assert "does not take a prompt as text" in problem(url=URL, api="chat", prompt_as="text")
