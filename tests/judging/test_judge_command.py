"""`quantgate judge` from its words: cost first, then the calls, then what they found."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from tests.judging.answered_run import CANDIDATE, ScriptedJudge, answered_run, preferring_baseline, store
from typer.testing import CliRunner

from quantgate.cli.main import app
from quantgate.judging.pair_verdicts import judged_pairs
from quantgate.store.redaction import without_text
from quantgate.store.run_folder import RunFolder, load_run
from quantgate.targets.openai.endpoint import EndpointError
from quantgate.targets.openai.settings import EndpointSettings
from quantgate_engine.errors import ConfigurationError, RunError

REQUESTS = 20


class OpenedJudge(ScriptedJudge):
    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store(answered_run(REQUESTS, preferring_baseline(0.7, REQUESTS, seed=1)), tmp_path)
    return tmp_path


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> OpenedJudge:
    scripted = OpenedJudge(position_bias=0.2)
    settings: list[EndpointSettings] = []

    def endpoint(given: EndpointSettings) -> OpenedJudge:
        settings.append(given)
        return scripted

    monkeypatch.setattr("quantgate.targets.openai.endpoint.Endpoint", endpoint)
    monkeypatch.setattr(scripted, "settings", settings, raising=False)
    return scripted


def quantgate(folder: Path, *more: object, **options: object) -> Any:
    settings = {
        "endpoint": "http://judge.test/v1", "model": "judge-1", "items": 20, "budget-requests": 200,
        "budget-tokens": 10**7,
    } | options  # fmt: skip
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    result = CliRunner().invoke(app, ["judge", str(folder), *words, *map(str, more)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_it_says_what_it_will_cost_before_it_starts(folder: Path, judge: OpenedJudge) -> None:
    result = quantgate(folder, "--yes", "--price-in", "2", "--price-out", "10")
    told = result.stderr
    assert "20 requests drawn, 40 pairs of answers: 0 identical" in told
    assert "Cost: 80 calls of judge-1; about" in told
    assert "at the given prices" in told
    assert told.index("Cost:") < told.index("judge: started")
    assert len(judge.bodies) == 80
    assert f"{CANDIDATE}: 20 pairs" in result.stdout
    assert "Spent: 80 calls, 3,200 prompt and 800 reply tokens (0.0144 at the given prices)" in result.stdout


def test_pairs_on_record_that_another_sample_drew_are_told(folder: Path, judge: OpenedJudge) -> None:
    assert "on record" not in quantgate(folder, "--yes", items=6).stderr
    told = quantgate(folder, "--yes", items=4)
    assert "4 requests drawn, 8 pairs of answers" in told.stderr
    assert "The figures count all 12 pairs on record; 4 of them are not of this sample: " in told.stderr
    assert f"{CANDIDATE}: 6 pairs" in told.stdout


def test_without_a_terminal_it_wants_a_yes(folder: Path, judge: OpenedJudge) -> None:
    with pytest.raises(ConfigurationError, match="add --yes"):
        quantgate(folder)
    assert judge.bodies == []
    assert load_run(folder).judgements.num_rows == 0


def test_the_document_has_every_figure(folder: Path, judge: OpenedJudge) -> None:
    result = quantgate(folder, "--yes", "--json")
    document = json.loads(result.stdout)
    assert document["schema"] == "quantgate.judging/1"
    assert document["spent"] == {
        "requests": 80, "prompt_tokens": 3200, "completion_tokens": 800, "money": None
    }  # fmt: skip
    arm = document["arms"][CANDIDATE]
    assert arm["prefer_baseline"] + arm["prefer_arm"] + arm["ties"] == arm["pairs"] == REQUESTS
    assert arm["loss"] == pytest.approx((arm["prefer_baseline"] - arm["prefer_arm"]) / REQUESTS)
    assert arm["interval"][0] <= arm["loss"] <= arm["interval"][1]
    assert document["position_bias"]["share"] > 0.5
    assert document["calibration"]["fit"] is True
    assert (document["pairs_not_begun"], document["stopped"]) == (0, None)


def test_a_budget_that_ends_early_is_said(folder: Path, judge: OpenedJudge) -> None:
    result = quantgate(folder, "--yes", **{"budget-requests": 21})
    assert len(judge.bodies) == 20
    assert "It may not cover all of that" in result.stderr
    assert "Ended early, the budget does not cover the next pair: 30 pairs of the sample were not begun." in (
        result.stderr
    )
    assert result.exit_code == 0


def test_the_settings_reach_the_endpoint_and_retries_stay_off(folder: Path, judge: OpenedJudge) -> None:
    quantgate(folder, "--yes", "--extra-body", '{"temperature": null, "seed": 3}', "--key-env", "JUDGE_KEY")
    (settings,) = judge.settings
    assert (settings.url, settings.model, settings.key_env) == ("http://judge.test", "judge-1", "JUDGE_KEY")
    assert settings.max_retries == 0
    assert "temperature" not in judge.bodies[0]
    assert judge.bodies[0]["seed"] == 3


def test_another_judge_is_refused_until_the_first_is_dropped(folder: Path, judge: OpenedJudge) -> None:
    quantgate(folder, "--yes")
    with pytest.raises(ConfigurationError, match="was judged by judge-1 already"):
        quantgate(folder, "--yes", model="judge-2")
    quantgate(folder, "--yes", "--replace", model="judge-2")
    assert set(load_run(folder).judgements.column("judge").to_pylist()) == {"judge-2"}
    assert len(judge.bodies) == 160


def test_an_endpoint_that_fails_ends_with_its_sentence_and_keeps_what_there_is(
    folder: Path, judge: OpenedJudge
) -> None:
    judge.fault = lambda call: EndpointError("The key is refused.", "status_4xx", 401) if call > 10 else None
    with pytest.raises(RunError, match=r"The key is refused\. What was judged so far is kept"):
        quantgate(folder, "--yes")
    kept = load_run(folder).judgements.to_pylist()
    assert sum(row["choice"] != "failed" for row in kept) == 10


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"endpoint": "judge.test"}, r"--endpoint: .*http"),
        ({"extra-body": "{"}, "--extra-body is no JSON"),
        ({"extra-body": '{"n": 3}'}, "--extra-body: "),
        ({"price-in": 1}, "--price-in and --price-out belong together"),
    ],
)
def test_wrong_options_are_told(folder: Path, judge: OpenedJudge, more: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        quantgate(folder, "--yes", **more)
    assert judge.bodies == []


def test_a_run_without_text_has_nothing_to_judge(tmp_path: Path, judge: OpenedJudge) -> None:
    run = answered_run(3, preferring_baseline(0.5, 3, seed=1))
    store(run, tmp_path)
    RunFolder(tmp_path, run.manifest.run_id).write_table("requests", without_text("requests", run.requests))
    with pytest.raises(ConfigurationError, match=r"was stored without text \(--no-text\)"):
        quantgate(tmp_path, "--yes")


@pytest.mark.parametrize("kind", ["connect", "status_4xx", "early_close"])
def test_calls_that_all_fail_are_a_failure_however_few(folder: Path, judge: OpenedJudge, kind: Any) -> None:
    judge.fault = lambda call: EndpointError("It is down.", kind)
    with pytest.raises(RunError, match=r"It is down\. None of \d+ calls of judge-1 brought a verdict"):
        quantgate(folder, "--yes", items=1)


def test_replies_that_cannot_be_read_are_a_failure_every_time(folder: Path, judge: OpenedJudge) -> None:
    judge.reply = lambda question: "Both are fine."
    for _ in range(2):
        with pytest.raises(RunError, match=r"^None of 80 calls of judge-1 brought a verdict that can be read"):
            quantgate(folder, "--yes")
    assert len(judge.bodies) == 80


def test_a_wrong_address_uses_up_no_budget(folder: Path, judge: OpenedJudge) -> None:
    judge.fault = lambda call: EndpointError("No such path.", "status_4xx", 404)
    with pytest.raises(RunError):
        quantgate(folder, "--yes", **{"budget-requests": 80})
    assert load_run(folder).judgements.num_rows > 0
    judge.fault = lambda call: None
    assert "of which" not in quantgate(folder, "--yes", **{"budget-requests": 80}).stderr
    assert {pair.preferred is None for pair in judged_pairs(load_run(folder).judgements)} == {False}


def test_one_failed_call_does_not_make_the_end_of_a_budget_a_failure(folder: Path, judge: OpenedJudge) -> None:
    judge.fault = lambda call: EndpointError("It broke off.", "early_close") if call == 1 else None
    result = quantgate(folder, "--yes", **{"budget-requests": 21})
    assert result.exit_code == 0
    assert "Failed calls: early_close 1." in result.stderr


def test_an_overrun_is_said_and_stored(folder: Path, judge: OpenedJudge) -> None:
    judge.usage = lambda body, random: {"prompt_tokens": 10**12, "completion_tokens": 1}
    result = quantgate(folder, "--yes", "--json", **{"budget-tokens": 50_000})
    rows = load_run(folder).judgements.to_pylist()
    spent = sum(row["prompt_tokens"] + row["completion_tokens"] for row in rows)
    assert f"The budget is overdrawn by {spent - 50_000:,} tokens." in result.stderr
    assert f"billed above what they were allowed to use: {len(rows)}." in result.stderr
    document = json.loads(result.stdout)
    assert (document["budget"]["overrun_tokens"], document["overbilled_calls"]) == (spent - 50_000, len(rows))
    assert {row["error_kind"] for row in rows} == {"overbilled"}
