"""Scripts that measure for minutes refuse a file that they could not write before they begin."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.output_file import output_file

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks"
OPTION = "--output"


def declarations(source: str) -> list[ast.Call]:
    """The calls that declare the option."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call for call in calls if call.args and ast.unparse(call.args[0]) == repr(OPTION)]


DECLARING = [path for path in sorted(SCRIPTS.rglob("*.py")) if declarations(path.read_text(encoding="utf-8"))]
RUN = [
    path for path in sorted(SCRIPTS.rglob("*.py"))
    if f"python {path.relative_to(ROOT)}" in (text := path.read_text(encoding="utf-8")) and f"{OPTION} " in text
]  # fmt: skip
"""Those that say how they are run, with the option in an example."""


def test_the_scripts_are_found() -> None:
    assert {"options.py", "compare.py", "practice_command.py", "agreement.py"} <= {path.name for path in DECLARING}
    assert {"gpu.py", "compare.py", "kv_pressure.py", "agreement.py"} <= {path.name for path in RUN}


@pytest.mark.parametrize("path", DECLARING, ids=lambda path: path.stem)
def test_every_script_looks_at_its_file_first(path: Path) -> None:
    for call in declarations(path.read_text(encoding="utf-8")):
        kinds = [ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "type"]
        assert kinds == [output_file.__name__]


@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_a_folder_that_is_missing_is_refused(path: Path, tmp_path: Path) -> None:
    if path.name == "gpu.py" and importlib.util.find_spec("triton") is None:
        pytest.skip("no Triton here")
    given = [OPTION, "nowhere/found.json", *(["--executor", "simulated"] if "--executor" in path.read_text() else [])]
    finished = subprocess.run([sys.executable, str(path), *given], cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 2
    assert "'nowhere/found.json' was given where a file that can be written was expected" in finished.stderr


def test_what_was_there_is_left_as_it_was_and_nothing_is_left_behind(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("{}", encoding="utf-8")
    assert [output_file(str(path)) for path in (old, new)] == [old, new]
    assert old.read_text(encoding="utf-8") == "{}"
    assert not new.exists()


def test_a_device_is_not_replaced_by_a_file() -> None:
    with pytest.raises(
        argparse.ArgumentTypeError, match="'/dev/null' is a device or a pipe, where a file was expected"
    ):
        output_file("/dev/null")


def test_what_cannot_be_written_is_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"was expected \(Is a directory\)$"):
        output_file(str(tmp_path))
    with pytest.raises(argparse.ArgumentTypeError, match=r"was expected \(File name too long\)$"):
        output_file(str(tmp_path / ("x" * 300)))

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Who runs the tests may be allowed everything.
    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(argparse.ArgumentTypeError, match=r"was expected \(Permission denied\)$"):
        output_file(str(tmp_path / "found.json"))
