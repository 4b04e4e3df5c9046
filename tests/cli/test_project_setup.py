"""The set-up: done once, done again when what it is made from changes, and refused in one sentence."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bootstrap(monkeypatch, tmp_path):
    """The script over a project in `tmp_path`, with every process that it starts written down instead."""
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    environment = tmp_path / ".venv"
    places = {
        "ROOT": tmp_path,
        "ENVIRONMENT": environment,
        "PYTHON": environment / "bin" / "python",
        "STAMP": environment / "stamp.json",
        "PIP_LOG": environment / "pip.log",
        "PYPROJECT": tmp_path / "pyproject.toml",
        "CONSTRAINTS": tmp_path / "constraints.txt",
    }
    for name, place in places.items():
        monkeypatch.setattr(module, name, place)
    module.PYPROJECT.write_text("[project]")
    module.CONSTRAINTS.write_text("torch==1")
    module.started = []
    module.exit_codes = {}

    def run_process(command, **settings):
        words = [str(word) for word in command]
        module.started.append(words)
        if "venv" in words:
            module.PYTHON.parent.mkdir(parents=True)
            module.PYTHON.write_text("")
        code = next((code for word, code in module.exit_codes.items() if word in words), 0)
        if code and settings.get("stdout") not in (None, subprocess.PIPE):
            settings["stdout"].write("Collecting torch\nERROR: No matching distribution found for torch==1\n")
        return subprocess.CompletedProcess(words, code, stdout="Error: cannot make it\n", stderr="")

    monkeypatch.setattr(module.subprocess, "run", run_process)
    monkeypatch.setattr(module.os, "execv", lambda program, arguments: module.started.append(arguments) or 0)
    return module


def installs(module) -> list[str]:
    return [command[-1] for command in module.started if "install" in command]


def test_run_sets_up_once_and_becomes_quantgate(bootstrap, tmp_path):
    bootstrap.main(["run", "suites/quick.yaml", "--json"])
    bootstrap.main(["run"])
    program = str(tmp_path / ".venv" / "bin" / "quantgate")
    assert installs(bootstrap) == [str(tmp_path)]
    assert bootstrap.started[-2] == [program, "run", "suites/quick.yaml", "--json"]
    assert bootstrap.started[-1] == [program, "run"]


def test_constraints_are_used(bootstrap, tmp_path):
    bootstrap.main(["run"])
    (install,) = [command for command in bootstrap.started if "install" in command]
    assert install[install.index("--constraint") + 1] == str(tmp_path / "constraints.txt")


def test_changed_dependencies_install_again(bootstrap):
    bootstrap.main(["run"])
    bootstrap.CONSTRAINTS.write_text("torch==2")
    bootstrap.main(["run"])
    assert len(installs(bootstrap)) == 2
    assert sum("venv" in command for command in bootstrap.started) == 1


def test_run_after_test_keeps_the_tools(bootstrap, tmp_path):
    bootstrap.main(["run"])
    bootstrap.main(["test"])
    bootstrap.main(["run"])
    assert installs(bootstrap) == [str(tmp_path), f"{tmp_path}[dev]"]
    bootstrap.CONSTRAINTS.write_text("torch==2")
    bootstrap.main(["run"])
    assert installs(bootstrap)[-1] == f"{tmp_path}[dev]"


def test_an_interrupted_set_up_is_taken_up_again(bootstrap):
    bootstrap.exit_codes["install"] = 1
    assert bootstrap.main(["run"]) == 3
    assert not bootstrap.STAMP.exists()
    bootstrap.exit_codes.clear()
    bootstrap.main(["run"])
    assert json.loads(bootstrap.STAMP.read_text())["extras"] == []


def test_failing_pip_is_one_sentence(bootstrap, capsys):
    bootstrap.exit_codes["install"] = 1
    assert bootstrap.main(["run"]) == 3
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("bootstrap: pip could not install the project (No matching distribution found for torch==1)")


def test_environment_that_cannot_be_made_is_one_sentence(bootstrap, capsys):
    bootstrap.exit_codes["venv"] = 1
    assert bootstrap.main(["run"]) == 3
    assert "could not be made: Error: cannot make it" in capsys.readouterr().err
    assert not bootstrap.ENVIRONMENT.exists()


def test_old_python_is_one_sentence(bootstrap, monkeypatch, capsys):
    monkeypatch.setattr(bootstrap, "OLDEST_PYTHON", (sys.version_info.major, sys.version_info.minor + 1))
    assert bootstrap.main(["run"]) == 3
    assert "or newer is needed and this is" in capsys.readouterr().err
    assert bootstrap.started == []


def test_missing_venv_module_is_one_sentence(bootstrap, monkeypatch, capsys):
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda name: None if name == "ensurepip" else object())
    assert bootstrap.main(["run"]) == 3
    assert "no ensurepip module" in capsys.readouterr().err
    assert bootstrap.started == []


def test_tests_run_last_and_a_failed_check_fails_all(bootstrap, capsys):
    bootstrap.exit_codes["mypy"] = 1
    assert bootstrap.main(["test", "-k", "some"]) == 1
    assert bootstrap.started[-1][1:] == ["-m", "pytest", "-k", "some"]
    assert "failed before the tests: mypy" in capsys.readouterr().err
    bootstrap.exit_codes.clear()
    assert bootstrap.main(["test"]) == 0
    bootstrap.exit_codes["pytest"] = 4
    assert bootstrap.main(["test"]) == 4


def test_without_a_command_it_says_what_there_is(bootstrap, capsys):
    assert bootstrap.main([]) == 2
    assert "bootstrap.py run" in capsys.readouterr().err
