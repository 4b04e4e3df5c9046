"""What a user may write about a server's life, and what is made of it."""

from __future__ import annotations

import json

import pytest

from quantgate.arm_life.settings import LaunchSettings, ServerCall
from quantgate.validation import parse_yaml_model
from quantgate_engine.errors import ConfigurationError

WHOLE = """
command: vllm serve my/model --port {port} --served-model-name "my model"
cwd: servers
environment: {CUDA_VISIBLE_DEVICES: "1", TOKEN: "${HUB_TOKEN}"}
ready: {paths: [/ping], status: 204, timeout_s: 900}
stop: {signal: SIGINT, grace_s: 10}
reset_prefix_cache: POST /reset_prefix_cache
metrics_path: null
"""


def parse(text: str) -> LaunchSettings:
    return parse_yaml_model(text, LaunchSettings, name="suite.yaml")


def test_a_command_may_be_text_or_words() -> None:
    assert parse(WHOLE).words == [
        "vllm", "serve", "my/model", "--port", "{port}", "--served-model-name", "my model",
    ]  # fmt: skip
    assert parse("command: [llama-server, '-m', 'a b.gguf']").words == ["llama-server", "-m", "a b.gguf"]
    assert parse("metrics_path: /metrics").words == []


def test_without_a_word_it_is_a_running_server_with_the_usual_paths() -> None:
    settings = LaunchSettings()
    assert settings.command is None
    assert settings.ready.paths == ["/health", "/v1/models"]
    assert settings.metrics_path == "/metrics"
    assert settings.reset_calls == []


def test_resets_are_one_call_or_several() -> None:
    assert parse(WHOLE).reset_calls == [ServerCall("POST", "/reset_prefix_cache")]
    several = parse("reset_prefix_cache: ['POST /slots/0?action=erase', GET /flush_cache]")
    assert several.reset_calls == [ServerCall("POST", "/slots/0?action=erase"), ServerCall("GET", "/flush_cache")]


def test_values_of_the_environment_stand_in_no_dump_and_no_repr() -> None:
    settings = parse(WHOLE.replace("${HUB_TOKEN}", "hf_secret"))
    assert settings.environment["TOKEN"] == "hf_secret"
    assert settings.model_dump()["environment"] == {"CUDA_VISIBLE_DEVICES": "(not kept)", "TOKEN": "(not kept)"}
    for written in (json.dumps(settings.model_dump(mode="json")), settings.model_dump_json(), repr(settings)):
        assert "hf_secret" not in written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("command: 'vllm serve \"my model'", "field command: the command cannot be split into words"),
        ("command: []", "field command: the command is empty"),
        ("command: '  '", "field command: the command is empty"),
        ("command: 3", "field command: expected text or a list, got 3"),
        ("environment: {'A B': x}", "'A B' is no name of an environment variable"),
        ("ready: {paths: [health]}", "field ready.paths.0: expected text that matches"),
        ("ready: {paths: []}", "field ready.paths: expected at least 1 item"),
        ("ready: {timeout_s: 0}", "field ready.timeout_s: expected a value above 0"),
        ("ready: {timeout_s: .inf}", "field ready.timeout_s: expected a finite number, got inf"),
        ("stop: {grace_s: .nan}", "field stop.grace_s: expected a "),
        ("stop: {signal: SIGSTOP}", "field stop.signal: expected 'SIGTERM'"),
        ("reset_prefix_cache: /reset", "field reset_prefix_cache: expected text that matches"),
        ("stop: {grace: 3}", "field stop.grace: unknown key, did you mean grace_s?"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_field(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(text)
    assert str(caught.value).startswith("suite.yaml, line 1, ")
    assert said in str(caught.value)
