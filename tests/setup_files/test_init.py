"""`quantgate init`: whatever it writes is valid, and it never overwrites unasked."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from tests.traffic.log_files import chat_row, write_log
from typer.testing import CliRunner, Result

from quantgate.arms.config import OpenAIArmConfig
from quantgate.cli.init import init
from quantgate.gate.policy import load_policy
from quantgate.resources import bundled_root
from quantgate.setup_files.answers import Flags, complete
from quantgate.setup_files.bundled_arms import BundledArms
from quantgate.setup_files.prompt import Nobody
from quantgate.setup_files.server_arms import ServerArms
from quantgate.suite import load_suite
from quantgate_engine.errors import ConfigurationError, QuantgateError

app = typer.Typer()
app.command()(init)

LOG = bundled_root() / "replay_samples" / "quick.jsonl"
SERVERS = ("--baseline", "http://fp16:8000", "--candidate", "http://int4:8000/v1")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own with a log in it, which is the current folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "access.jsonl").write_bytes(LOG.read_bytes())
    monkeypatch.chdir(folder)
    return folder


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["--log", "access.jsonl", *arguments])


def error_of(result: Result) -> QuantgateError:
    assert isinstance(result.exception, QuantgateError), result.output
    return result.exception


def workflow(folder: Path) -> dict[Any, Any]:
    document: dict[Any, Any] = yaml.safe_load((folder / ".github" / "workflows" / "quantgate.yml").read_text())
    return document


@pytest.mark.parametrize("policy", ["chat", "batch", "mixed", "ci"])
@pytest.mark.parametrize("ci", ["github", "gitlab", "none"])
@pytest.mark.parametrize("arms", [SERVERS, ("--model", "smollm2-135m-instruct")], ids=["servers", "bundled"])
def test_every_file_that_is_written_is_valid(project: Path, arms: tuple[str, ...], ci: str, policy: str) -> None:
    result = invoke(*arms, "--ci", ci, "--policy", policy, "--json")
    assert result.exit_code == 0, result.output
    written = json.loads(result.stdout)["written"]
    assert len(written) == (2 if ci == "none" else 3)
    assert all((project / path).is_file() for path in written)
    loaded = load_suite(project / "quantgate" / "suite.yaml")
    assert loaded.trace_path.resolve() == project / "access.jsonl"
    assert loaded.suite.policy == "policy.yaml"
    assert load_policy(project / "quantgate" / "policy.yaml").name == policy


def test_servers_become_arms(project: Path) -> None:
    more = ("--candidate", "http://int8:8000", "--key-env", "MY_KEY", "--model", "llama", "--tokenizer", "org/llama")
    assert invoke(*SERVERS, *more).exit_code == 0
    suite = load_suite(project / "quantgate" / "suite.yaml").suite
    assert suite.tokenizer == "org/llama"
    assert [(arm.arm_id, arm.role) for arm in suite.arms] == [
        ("baseline", "baseline"), ("candidate-1", "candidate"), ("candidate-2", "candidate")
    ]  # fmt: skip
    for arm in suite.arms:
        assert isinstance(arm, OpenAIArmConfig)
        assert (arm.model, arm.key_env) == ("llama", "MY_KEY")
    assert suite.workload.output_lengths == "auto"
    assert workflow(project)["jobs"]["quantgate"]["steps"][3]["env"]["MY_KEY"] == "${{ secrets.MY_KEY }}"


def test_servers_can_be_given_the_ids_of_their_arms(project: Path) -> None:
    named = ("--baseline", "fp16=http://a:8000", "--candidate", "int4=http://b:8000", "--candidate", "http://c?x=y")
    assert "has a query" in str(error_of(invoke(*named)))
    assert invoke(*named[:4], "--candidate", "5=http://c").exit_code == 0
    suite = load_suite(project / "quantgate" / "suite.yaml").suite
    assert [arm.arm_id for arm in suite.arms] == ["fp16", "int4", "5"]


def test_schemes_become_arms(project: Path) -> None:
    assert invoke("--model", "smollm2-135m-instruct", "--schemes", "bf16, int4-g32").exit_code == 0
    suite = load_suite(project / "quantgate" / "suite.yaml").suite
    assert [(arm.arm_id, arm.role) for arm in suite.arms] == [("bf16", "baseline"), ("int4-g32", "candidate")]


def test_paths_hold_wherever_the_project_lies(project: Path) -> None:
    """The log and a model's folder are named from the current folder; the suite names them from its own place."""
    (project / "model folder").mkdir()
    elsewhere = project / "deeper" / "down"
    result = invoke("--model", "model folder", "--dir", str(elsewhere))
    assert result.exit_code == 0, result.output
    loaded = load_suite(elsewhere / "quantgate" / "suite.yaml")
    assert loaded.trace_path.resolve() == project / "access.jsonl"
    assert loaded.suite.model is not None
    assert (elsewhere / loaded.suite.model).resolve() == project / "model folder"


def test_a_column_map_is_named_beside_the_log(project: Path) -> None:
    write_log(project / "odd.log", {"at": 1769860800, "question": "hi", "usage": {"completion_tokens": 3}})
    (project / "columns.yaml").write_text("schema: quantgate.columns/1\ntime: {path: at}\nprompt: question\n")
    assert "say in a column map" in str(error_of(CliRunner().invoke(app, [*SERVERS, "--log", "odd.log"])))
    assert CliRunner().invoke(app, [*SERVERS, "--log", "odd.log", "--columns", "columns.yaml"]).exit_code == 0
    assert load_suite(project / "quantgate" / "suite.yaml").suite.workload.columns == "../columns.yaml"


def test_the_whole_log_is_read_as_a_run_would(project: Path) -> None:
    rows = [chat_row(1769860800, "hi"), chat_row(1769860801, "hi", tokens=-1)]
    write_log(project / "bad.jsonl", *rows)
    refused = error_of(CliRunner().invoke(app, [*SERVERS, "--log", "bad.jsonl"]))
    assert str(refused).startswith("bad.jsonl, line 2, field response.usage.completion_tokens: ")
    assert not (project / "quantgate").exists()


def test_nothing_is_overwritten_and_nothing_is_half_written(project: Path) -> None:
    (project / "quantgate").mkdir()
    (project / "quantgate" / "policy.yaml").write_text("precious")
    assert "policy.yaml: exists already" in str(error_of(invoke(*SERVERS)))
    assert (project / "quantgate" / "policy.yaml").read_text() == "precious"
    assert not (project / "quantgate" / "suite.yaml").exists()
    assert not (project / ".github").exists()
    (project / "quantgate" / "suite.yaml").write_text("precious too")
    sentence = "policy.yaml: exist already; write elsewhere, or replace them with --force."
    assert str(error_of(invoke(*SERVERS))).endswith(sentence)
    assert invoke(*SERVERS, "--force").exit_code == 0
    assert load_policy(project / "quantgate" / "policy.yaml").name == "mixed"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "these flags are needed: --baseline URL (or --model MODEL for the bundled engine), --candidate URL."),
        (SERVERS[:2], "these flags are needed: --candidate URL."),
        (SERVERS[2:], "these flags are needed: --baseline URL (or --model MODEL for the bundled engine)."),
        ((*SERVERS, "--schemes", "fp16"), "--schemes chooses precisions of the bundled engine"),
        (("--model", "m", "--schemes", "fp16,int5"), "Unknown scheme 'int5'"),
        (("--model", "m", "--schemes", "fp16"), "--schemes: expected at least 2 items"),
        ((*SERVERS, "--policy", "strict"), "--policy is 'strict'; expected one of: chat, batch, mixed, ci."),
        (("--baseline", "fp16", "--candidate", "http://x"), "--baseline: 'fp16' is no http or https URL"),
        ((*SERVERS, "--candidate", "int8=x"), "--candidate: 'x' is no http or https URL"),
        ((*SERVERS[:2], "--candidate", "a b=http://x"), "--candidate: expected text that matches"),
        ((*SERVERS[:2], "--candidate", "baseline=http://x"), "--candidate: two arms are called 'baseline'"),
        ((*SERVERS, "--columns", "none.yaml"), "none.yaml: there is no such file"),
    ],
)  # fmt: skip
def test_what_cannot_be_set_up_is_told_in_one_sentence(
    project: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    error = error_of(invoke(*arguments))
    assert sentence in str(error)
    assert error.exit_code == 2
    assert not (project / "quantgate").exists()


def test_a_log_that_is_missing_or_empty(project: Path) -> None:
    result = CliRunner().invoke(app, list(SERVERS))
    assert "these flags are needed: --log FILE." in str(error_of(result))
    assert "there is no such file" in str(error_of(CliRunner().invoke(app, [*SERVERS, "--log", "missing"])))
    (project / "empty").write_text("\n")
    assert "empty: the trace is empty" in str(error_of(CliRunner().invoke(app, [*SERVERS, "--log", "empty"])))


def test_the_github_workflow_has_the_right_shape(project: Path) -> None:
    assert invoke(*SERVERS).exit_code == 0
    document = workflow(project)
    # YAML 1.1 reads the key `on` as true.
    assert set(document[True]) == {"pull_request", "workflow_dispatch"}
    assert document["permissions"] == {"contents": "read"}
    steps = document["jobs"]["quantgate"]["steps"]
    assert [step.get("name") for step in steps] == [None, None, "Install", "Judge", "Keep the report"]
    assert "--no-text" in steps[3]["run"]
    assert steps[4]["if"] == "always()"


@pytest.mark.parametrize("undecided", ["fail", "pass"])
def test_the_github_job_keeps_the_exit_codes(project: Path, undecided: str) -> None:
    """Runs the step's own script with a stand-in for quantgate that ends with each code."""
    assert invoke(*SERVERS, "--undecided", undecided).exit_code == 0
    document = workflow(project)
    script = document["jobs"]["quantgate"]["steps"][3]["run"]
    stand_in = project / "bin" / "quantgate"
    stand_in.parent.mkdir()
    stand_in.write_text('#!/bin/sh\necho "$@" > called\nexit "$CODE"\n')
    stand_in.chmod(0o755)
    path = f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}"
    for code in (0, 1, 2, 3, 4, 5):
        environment = {"PATH": path, "CODE": str(code), **document["env"]}
        ended = subprocess.run(["bash", "-e", "-c", script], env=environment, check=False, capture_output=True)
        assert ended.returncode == (0 if code == 4 and undecided == "pass" else code)
    assert (project / "called").read_text() == "run quantgate/suite.yaml --results results --no-text\n"


@pytest.mark.parametrize(("undecided", "allowed"), [("fail", False), ("pass", {"exit_codes": [4]})])
def test_the_gitlab_job_has_the_right_shape(project: Path, undecided: str, allowed: Any) -> None:
    assert invoke(*SERVERS, "--ci", "gitlab", "--undecided", undecided).exit_code == 0
    job = yaml.safe_load((project / ".gitlab-ci.yml").read_text())["quantgate"]
    assert job["script"] == ["quantgate run quantgate/suite.yaml --results results --no-text"]
    assert job["allow_failure"] == allowed
    assert job["artifacts"]["when"] == "always"


class Scripted:
    """Answers in order, and keeps the questions."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.questions: list[str] = []

    def text(self, question: str, /, *, flag: str, default: str | None = None) -> str:
        self.questions.append(question)
        return self._answers.pop(0) or default or ""

    def choice(self, question: str, choices: Sequence[str], /, *, default: str) -> str:
        return self.text(question, flag="", default=default)


def test_questions_for_servers() -> None:
    prompt = Scripted("servers", "http://a", "http://b, http://c", "", "access.jsonl", "chat")
    answers = complete(Flags(), prompt)
    assert answers.arms == ServerArms("http://a", ("http://b", "http://c"))
    assert (answers.log, answers.policy) == (Path("access.jsonl"), "chat")


def test_questions_for_the_bundled_engine() -> None:
    prompt = Scripted("bundled", "smollm2-135m-instruct", "", "trace.csv", "")
    answers = complete(Flags(), prompt)
    assert answers.arms == BundledArms("smollm2-135m-instruct", ("fp16", "int8-w8a16", "int4-g64"))
    assert answers.policy == "mixed"


def test_what_flags_say_is_not_asked() -> None:
    prompt = Scripted("ci")
    flags = Flags(model="m", schemes=("fp16", "int4-g64"), log=Path("a"))
    assert complete(flags, prompt).policy == "ci"
    assert prompt.questions == ["Policy to start from"]


def test_nobody_is_content_with_defaults() -> None:
    nobody = Nobody()
    complete(Flags(model="m", log=Path("a")), nobody)
    nobody.refuse_gaps()
    complete(Flags(model="m"), nobody)
    with pytest.raises(ConfigurationError, match=r"these flags are needed: --log FILE\."):
        nobody.refuse_gaps()


def test_the_questions_on_a_terminal(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quantgate.cli.init._somebody_is_there", lambda: True)
    typed = ["servers", "", "http://fp16:8000", "http://int4:8000", "", "access.jsonl", "loose", "chat", "none"]
    result = CliRunner().invoke(app, [], input="".join(f"{line}\n" for line in typed))
    assert result.exit_code == 0, result.output
    # An empty answer where there is no default, and an unknown choice, are asked for again.
    assert "An answer is needed here (or the flag --baseline URL" in result.output
    suite = load_suite(project / "quantgate" / "suite.yaml").suite
    assert [arm.arm_id for arm in suite.arms] == ["baseline", "candidate"]
    assert load_policy(project / "quantgate" / "policy.yaml").name == "chat"
    assert not (project / ".github").exists()


def test_an_input_that_ends_early_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quantgate.cli.init._somebody_is_there", lambda: True)
    error = error_of(CliRunner().invoke(app, [], input="servers\n"))
    assert str(error).startswith("The input ended at the question 'URL of the baseline")
