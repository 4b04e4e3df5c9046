"""Values of flags that no setting can have are told under the flag's own name, before anything is loaded."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from quantgate.cli.main import app
from quantgate.run import replay_trace as replay_trace_module
from quantgate.run import run_suite as run_suite_module
from quantgate_engine.errors import ConfigurationError

SERVERS = ("run", "--baseline", "http://a:1", "--candidate", "http://b:1", "--log", "t.jsonl")


@pytest.fixture(autouse=True)
def nothing_is_loaded(monkeypatch):
    def refuse(*_arguments, **_keywords):
        raise AssertionError("arms were opened")

    monkeypatch.setattr(replay_trace_module, "opened_arms", refuse)
    monkeypatch.setattr(run_suite_module, "opened_arms", refuse)


def complaint(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, ConfigurationError), result.exception
    return str(result.exception)


@pytest.mark.parametrize("command", [("replay", "t.jsonl"), SERVERS], ids=["replay", "run"])
@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--window", "0:0"), "LENGTH of --window: expected a value above 0, got 0.0."),
        (("--window", "0:-5"), "LENGTH of --window: expected a value above 0, got -5.0."),
        (("--window", "-5:10"), "START of --window: expected a value of at least 0, got -5.0."),
        (("--window", "nan:5"), "START of --window: expected a value of at "),
        (("--window", "0:inf"), "LENGTH of --window: expected a value of at most 1000000000, got inf."),
        (("--window", "5"), "--window is '5'; expected START:LENGTH in seconds, such as 600:120."),
        (("--spread-ticks", "often"), "--spread-ticks is 'often'; expected auto or seconds, such as 3."),
        (("--spread-ticks", "0"), "--spread-ticks: expected a value above 0.001, got 0.0."),
        (("--thin", "0"), "--thin: expected a value above 0, got 0.0."),
        (("--thin", "nan"), "--thin: expected a value "),
        (("--speed", "inf"), "Invalid value for '--speed': expected a finite number, got inf"),
        (("--speed", "1e9"), "--speed: expected a value of at most 1000000, got 1000000000.0."),
        (("--arrivals", "poisson"), "--arrivals is 'poisson'; expected constant:RATE, poisson:RATE, g"),
        (("--arrivals", "gamma:2"), "TO_RATE, such as poisson:2.5."),
        (("--arrivals", "poisson:2:3"), "--arrivals is 'poisson:2:3'; expected "),
        (("--arrivals", "poisson:fast"), "--arrivals is 'poisson:fast'; expected "),
        (("--arrivals", "pareto:2"), "--arrivals is 'pareto:2'; expected "),
        (("--arrivals", "poisson:-1"), "RATE of --arrivals: expected a value above 0, got -1.0."),
        (("--arrivals", "poisson:nan"), "RATE of --arrivals: expected a finite number, got nan."),
        (("--arrivals", "gamma:2:inf"), "CV of --arrivals: expected a finite number, got inf."),
        (("--arrivals", "ramp:1:0"), "TO_RATE of --arrivals: expected a value above 0, got 0.0."),
        (("--rate-cap", "fast"), "--rate-cap is 'fast'; expected RATE or RATE:WINDOW_S, such as 10 or 0.5:60."),
        (("--rate-cap", "2:"), "--rate-cap is '2:'; expected "),
        (("--rate-cap", "0"), "RATE of --rate-cap: expected a value above 0, got 0.0."),
        (("--rate-cap", "2:inf"), "WINDOW_S of --rate-cap: expected a "),
        (("--rate-cap", "0.5"), "of 1 s holds less than one start at 0.5 per second; widen it to 2 s or more."),
        (("--clients", "0"), "Invalid value for '--clients': "),
        (("--client-think", "1"), "--client-think: only the clients of a closed loop pause; say how many in clients."),
        (("--client-think", "-1"), "--client-think: expected a value of at least 0, got -1.0."),
        (("--client-think", "nan"), "--client-think: expected a finite number, got nan."),
        (("--clients", "2", "--arrivals", "poisson:1"), "--clients: the clients of a closed loop send when they a"),
        (("--request-timeout", "-1"), "--request-timeout: expected a value above 0, got -1.0."),
        (("--request-timeout", "nan"), "--request-timeout: expected a "),
        (("--request-timeout", "inf"), "--request-timeout: expected a finite number, got inf."),
        (("--seed", "-1"), "Invalid value for '--seed': "),
    ],
)  # fmt: skip
def test_traffic_flags(command, flags, sentence):
    assert sentence in complaint(*command, *flags)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ("--max-active-requests", "9", "--max-step-tokens", "3"),
            "--max-step-tokens: got 3, expected at least max_active_requests (9)",
        ),
    ],
)
def test_engine_flags(flags, sentence):
    assert sentence in complaint("replay", "t.jsonl", *flags)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--candidate", "junk"), "--candidate: 'junk' is no http or https URL; expected one such as http://localhost"),
        (("--candidate", "x/y=http://c:1"), "--candidate: expected text that matches "),
        (("--candidate", "c=http://c:1", "--candidate", "c=http://d:1"), "--candidate: two arms are called 'c'; give"),
        (
            ("--key-env", "A=sk-1"),
            "--key-env: this is no name of an environment variable; expected one such as OPENAI_",
        ),
        (("--tokenizer", ""), "--tokenizer: expected a value, got an empty text; is the variable set"),
        (("--policy=",), "--policy: expected a value, got an empty text; is the variable set"),
        (("--launch-baseline", "'x"), "--launch-baseline: the command cannot be split into words (No closing quotatio"),
        (("--launch-candidate", " "), "--launch-candidate: the command is empty; expected the program and its argume"),
        (("--one-at-a-time",), "--baseline: the device holds one arm at a time, but nothing says how to launch"),
    ],
)
def test_flags_of_servers(flags, sentence):
    assert complaint(*SERVERS, *flags).startswith(sentence)


def test_who_has_no_suite_is_told_the_flags_that_launch():
    assert "launch.command (--launch-baseline, --launch-candidate)" in complaint(*SERVERS, "--one-at-a-time")


@pytest.mark.parametrize(
    "flags",
    [
        ("--log", "t.jsonl"),
        ("--window", "0:5"),
        ("--arrivals", "poisson:1"),
        ("--clients", "2"),
        ("--passes", "1"),
        ("--one-at-a-time",),
        ("--request-timeout", "5"),
    ],
    ids=lambda flags: flags[0],
)
def test_a_flag_that_a_suite_would_not_heed_is_refused(flags):
    assert complaint("run", "quick", *flags).startswith(f"{flags[0]} needs --baseline and --candidate; what a suite")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("report", "r", "--price-per-hour", "inf"), "'--price-per-hour': expected a finite number, got inf"),
        (("judge", "r", "--price-in", "inf"), "'--price-in': expected a finite number, got inf"),
        (("judge", "r", "--seed", "-1"), "'--seed': "),
        (("policy", "init", "r", "--headroom", "inf"), "'--headroom': expected a finite number, got inf"),
        (("serve", "m", "--request-timeout", "inf"), "'--request-timeout': expected a finite number, got inf"),
        (("serve", "m", "--drain-seconds", "inf"), "'--drain-seconds': expected a finite number, got inf"),
        (("serve", "m", "--seed", "-1"), "'--seed': "),
        (("compare", "r", "--seed", "-1"), "'--seed': "),
        (("bench", "--seed", "-1"), "'--seed': "),
    ],
)
def test_flags_of_other_commands(arguments, sentence):
    assert sentence in complaint(*arguments)


LENGTHS = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,33,44\n"


def test_lengths_without_texts_are_refused_before_a_server_is_asked(tmp_path):
    (tmp_path / "azure.csv").write_text(LENGTHS)
    flags = ("--log", str(tmp_path / "azure.csv"), "--results", str(tmp_path))
    assert "The trace tells lengths without texts" in complaint(*SERVERS, *flags)


def test_more_blocks_than_requests_are_refused_before_a_server_is_asked(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"id": "a", "offset": 0, "prompt": "hi", "max_tokens": 3}\n')
    flags = ("--log", str(tmp_path / "t.jsonl"), "--results", str(tmp_path), "--blocks", "2")
    assert "to be split into 2 blocks; expected between 1 and 1" in complaint(*SERVERS, *flags)


def test_more_clients_than_requests_are_refused_before_a_server_is_asked(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"id": "a", "offset": 0, "prompt": "hi", "max_tokens": 3}\n')
    flags = ("--log", str(tmp_path / "t.jsonl"), "--results", str(tmp_path), "--clients", "2")
    assert complaint(*SERVERS, *flags) == (
        "The closed loop was to have 2 clients, but a block of the workload holds only 1 (sessions and single "
        "requests): lower `clients` in the suite's workload (--clients) or `blocks` (--blocks)."
    )
