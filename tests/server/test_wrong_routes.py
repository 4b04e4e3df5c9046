"""Paths and methods that the server does not have, and those that it takes though they are written otherwise."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.server.running import RunningServer


def ask(server: RunningServer, method: str, path: str, **options: Any) -> httpx.Response:
    return httpx.request(method, server.url + path, **options)


def test_a_path_that_there_is_not_is_told_with_those_that_there_are(server: RunningServer) -> None:
    for method, path in (("POST", "/v1/embeddings"), ("GET", "/"), ("GET", "/v1/%0a%C3%A9")):
        answer = ask(server, method, path)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (404, "no_such_route")
        told = path.replace("%0a", "%0A")
        assert error["message"].startswith(f"{method} {told} is no route of this server; expected one of /v1/compl")
        assert "/health" in error["message"]


def test_a_method_that_a_path_does_not_take_is_told_with_those_that_it_does(server: RunningServer) -> None:
    for method, path, allowed in (("GET", "/v1/completions", "POST"), ("DELETE", "/health", "GET, HEAD")):
        answer = ask(server, method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
        assert answer.json()["error"]["message"].startswith(f"{method} {path} is not possible; this path takes ")
        assert answer.json()["error"]["code"] == "method_not_supported"


@pytest.mark.parametrize("path", ["/health", "/metrics", "/v1/models"])
def test_head_is_answered_as_get_without_a_body(server: RunningServer, path: str) -> None:
    answer = ask(server, "HEAD", path)
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_slash_at_the_end_means_nothing(server: RunningServer) -> None:
    answer = ask(server, "POST", "/v1/completions/", json={"prompt": "a", "max_tokens": 1})
    assert answer.status_code == 200
    assert ask(server, "GET", "/v1/models/").json()["object"] == "list"


def test_a_websocket_is_answered_as_plain_http(server: RunningServer) -> None:
    upgrade = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }  # fmt: skip
    answer = ask(server, "GET", "/v1/completions", headers=upgrade)
    assert answer.status_code == 405
    assert "GET /v1/completions is not possible" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("path", "body"), [("/tokenize", {"prompt": "a"}), ("/detokenize", {"tokens": [1]})])
def test_another_model_is_not_found_by_the_text_routes_either(
    server: RunningServer, path: str, body: dict[str, Any]
) -> None:
    answer = ask(server, "POST", path, json=body | {"model": "other"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")
    assert ask(server, "POST", path, json=body | {"model": "tiny"}).status_code == 200
