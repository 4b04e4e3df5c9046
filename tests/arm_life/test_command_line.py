"""The command that is really run."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from quantgate.arm_life.command_line import PreparedCommand, address_of, prepare_command
from quantgate.arm_life.settings import LaunchSettings
from quantgate_engine.errors import ConfigurationError

URL = "http://gpu1:8001"


def prepare(folder: Path, **launch: Any) -> PreparedCommand:
    return prepare_command(
        LaunchSettings.model_validate(launch),
        URL,
        arm_id="int4",
        environment={"PATH": "/usr/bin:/bin", "HUB_TOKEN": "hf_0123456789"},
        folder=folder,
    )


def test_the_arms_address_is_filled_in_and_other_braces_stay(tmp_path: Path) -> None:
    command = prepare(tmp_path, command=["sh", "--at={host}:{port}", "{url}/v1", '{"a": {port}}', "{model}"])
    assert command.words[1:] == ["--at=gpu1:8001", "http://gpu1:8001/v1", '{"a": 8001}', "{model}"]


@pytest.mark.parametrize(
    ("url", "address"),
    [("http://a", ("a", 80)), ("https://a/x", ("a", 443)), ("http://[::1]:9", ("::1", 9))],
)
def test_a_url_without_a_port_has_its_schemes_own(url: str, address: tuple[str, int]) -> None:
    assert address_of(url) == address


def test_the_environment_is_added_to_and_variables_are_looked_up(tmp_path: Path) -> None:
    added = {"TOKEN": "Bearer ${HUB_TOKEN}", "CUDA_VISIBLE_DEVICES": "1", "PATH": "${PATH}:/opt/bin"}
    command = prepare(tmp_path, command="sh", environment=added)
    assert command.environment == {
        "PATH": "/usr/bin:/bin:/opt/bin",
        "HUB_TOKEN": "hf_0123456789",
        "TOKEN": "Bearer hf_0123456789",
        "CUDA_VISIBLE_DEVICES": "1",
    }
    # A single digit is no secret, and hiding it would leave nothing of a log line.
    assert command.secrets == ("Bearer hf_0123456789", "/usr/bin:/bin:/opt/bin")
    assert "hf_0123456789" not in repr(command)


def test_a_relative_folder_and_program_count_from_the_given_folder(tmp_path: Path) -> None:
    (tmp_path / "servers").mkdir()
    program = tmp_path / "servers" / "start"
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    command = prepare(tmp_path, command="./start now", cwd="servers")
    assert (command.cwd, Path(command.words[0]).resolve()) == (tmp_path / "servers", program)
    assert prepare(tmp_path, command="sh").cwd == Path.cwd()


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        (
            {"command": "no-such-server"},
            "launch.command (--launch-baseline, --launch-candidate): there is no program 'no-such-server'",
        ),
        ({"command": "sh", "cwd": "nowhere"}, "nowhere is no folder"),
        (
            {"command": "sh", "environment": {"T": "${MISSING}"}},
            "launch.environment.T: the environment variable MISSING is not set",
        ),
    ],
)
def test_what_is_missing_is_told_before_anything_starts(tmp_path: Path, launch: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^Arm int4, field ") as caught:
        prepare(tmp_path, **launch)
    assert said in str(caught.value)
