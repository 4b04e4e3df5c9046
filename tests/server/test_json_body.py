"""A body that cannot be read, or that holds what no field may, is told by what is wrong with it."""

from __future__ import annotations

import json

import httpx
import pytest
from tests.server.running import RunningServer

from quantgate_engine.server.api_error import ApiError
from quantgate_engine.server.json_body import MAX_DEPTH, json_object

PATHS = ("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/quantgate/continuation_logits")


def refusal(body: bytes) -> str:
    with pytest.raises(ApiError) as refused:
        json_object(body)
    assert refused.value.status_code == 400
    return str(refused.value.detail)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"prompt": "\xff"}', "The body is not UTF-8 (byte 0xff at position 12); send JSON in UTF-8."),
        (b'{"prompt": "\xed\xa0\x80"}', "The body is not UTF-8 (byte 0xed at position 12); send JSON in UTF-8."),
        (b"[" * 10_000, f"The body has lists or objects inside one another more than {MAX_DEPTH} deep"),
        (b'{"a": ' * 80 + b"1" + b"}" * 80, f"a has lists or objects inside one another more than {MAX_DEPTH}"),
        (b'{"seed": ' + b"9" * 5000 + b"}", "The body holds a number of thousands of digits"),
        (b"null", "The body is JSON, but no object; expected a JSON object."),
        (b'{"prompt": "a\\ud83d"}', "prompt holds \\ud83d, half of a surrogate pair, which is no character"),
        (b'{"messages": [{"role": "user", "content": ["\\uDE00"]}]}', "messages holds \\ude00, half of a surrogate"),
        (b'{"a": {"\\udc00": 1}}', "a holds \\udc00, half of a surrogate pair"),
        (b'{"\\udc00": 1}', "'\\udc00' holds \\udc00, half of a surrogate pair"),
        (b'{"prompt": "a\nb"}', "The body is not valid JSON: Invalid control character at line 1, column 14 (char"),
        (b'{"a": 1,\n "b": "c', "The body is not valid JSON: Unterminated string starting at line 2, column 7 (char"),
        (b'{"a": 1, "a": 1}', "The body has the key 'a' twice in one object; give it once."),
        (b'{"m": [{"role": "a", "ro\\u006ce": "b"}]}', "The body has the key 'role' twice in one object"),
        (b'{"temperature": NaN}', "The body is not valid JSON: it holds NaN, which JSON does not have."),
        (b'{"x": [-Infinity]}', "The body is not valid JSON: it holds -Infinity"),
        (b"\x1f\x8b\x08\x00", "The body is compressed (gzip); send it as it is, uncompressed JSON in UTF-8."),
    ],
    ids=range(17),
)
def test_what_is_wrong_is_said(body: bytes, message: str) -> None:
    assert refusal(body).startswith(message)


def test_whole_characters_and_allowed_depths_pass() -> None:
    nested = {"a": "x"}
    for _ in range(MAX_DEPTH - 1):
        nested = {"a": nested}
    for document in (nested, {"prompt": "\U0001f600"}, {"prompt": "\\ud83d is an escape"}):
        assert json_object(json.dumps(document).encode()) == document


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"content-type": "application/json; charset=utf-16"}, "The header Content-Type states the charset 'utf-16'"),
        ({"content-type": "application/json", "content-encoding": "br"}, "The header Content-Encoding is 'br'"),
    ],
)
def test_other_codings_than_plain_utf_8_are_refused(
    server: RunningServer, headers: dict[str, str], message: str
) -> None:
    answer = httpx.post(f"{server.url}/tokenize", content=b'{"prompt": "a"}', headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(message)


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", '"utf-8"', "us-ascii"])
def test_names_of_utf_8_are_taken(server: RunningServer, charset: str) -> None:
    headers = {"content-type": f"application/json; charset={charset}", "content-encoding": "identity"}
    assert httpx.post(f"{server.url}/tokenize", content=b'{"prompt": "a"}', headers=headers).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_every_route_reads_so(server: RunningServer, path: str) -> None:
    answer = httpx.post(server.url + path, content=b'{"x": "\\ud800"}', headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "x")


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/tokenize", {}, "The body has neither of prompt and messages; give one of them."),
        ("/tokenize", {"prompt": "a", "messages": [{"role": "user", "content": "a"}]}, "The body has both of"),
        ("/v1/completions", {"prompt": "a", "max_tokens": 10**400}, "max_tokens: Input should be less than"),
        ("/v1/completions", {"prompt": "a", "stop": ""}, "stop: String should have at least 1 character"),
        ("/v1/completions", {"prompt": ["a"] * 5000}, "The request asks for 5,000 answers (its prompts times n)"),
        ("/v1/completions", {"prompt": "a", "model": "m" * 500}, f"The model '{'m' * 79}...{'m' * 19}' is not"),
        ("/v1/completions", {"prompt": "a", "slo_class": "a " * 100}, "slo_class is 'a a"),
    ],
    ids=range(7),
)  # fmt: skip
def test_answers_are_short_and_name_what_helps(
    server: RunningServer, path: str, body: dict[str, object], message: str
) -> None:
    answer = httpx.post(server.url + path, json=body)
    said = answer.json()["error"]["message"]
    assert answer.status_code in (400, 404)
    assert said.startswith(message)
    assert len(said) < 400


def test_a_message_that_is_too_long_is_cut() -> None:
    assert len(ApiError(400, "many words " * 1000).body()["error"]["message"]) == 1003
