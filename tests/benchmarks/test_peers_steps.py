"""The steps of a peer's set-up: each once, again when what it was made from changes, with its failure told."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.peers import steps
from benchmarks.peers.description import EngineDescription, Step
from benchmarks.peers.peers_folder import PeersFolder
from benchmarks.peers.steps import ModelSource, SetUpError, cause, set_up_engine, set_up_engines

SOURCE = ModelSource(Path("hf"), Path("model.gguf"), "abc")


def write(name: str, *words: str, produces: str = "models/out") -> Step:
    code = "import sys; open(sys.argv[1], 'a').write(' '.join(sys.argv[2:]) + '\\n')"
    return Step(name, ("{python}", "-c", code, f"{{folder}}/{produces}", *words), produces=(produces,))


def engine(*taken: Step) -> EngineDescription:
    return EngineDescription("peer", "peer-environment", (), (), taken)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PeersFolder:
    # pip is not needed here, and brings seconds.
    monkeypatch.setattr(steps, "MAKE_ENVIRONMENT", (sys.executable, "-m", "venv", "--clear", "--without-pip"))
    return PeersFolder(tmp_path)


def taken_of(description: EngineDescription, folder: PeersFolder, source: ModelSource = SOURCE) -> list[str]:
    told: list[str] = []
    set_up_engine(description, folder, source, told.append)
    return [text.removeprefix("peer: ") for text in told]


def test_steps_are_taken_once(folder: PeersFolder) -> None:
    description = engine(write("convert", "{hf}", "{gguf}"))
    assert taken_of(description, folder) == ["make environment", "convert"]
    assert folder.python(description).exists()
    assert (folder.models / "out").read_text() == "hf model.gguf\n"
    assert taken_of(description, folder) == []


def test_a_step_and_those_after_it_are_taken_again_when_it_changes(folder: PeersFolder) -> None:
    first, last = write("first", "1", produces="one"), write("last", "1", produces="two")
    taken_of(engine(first, last), folder)
    assert taken_of(engine(first, write("last", "2", produces="two")), folder) == ["last"]
    assert taken_of(engine(write("first", "2", produces="one"), last), folder) == ["first", "last"]
    # What a step makes is made anew, not added to.
    assert (folder.path / "one").read_text() == "2\n"


def test_a_product_that_is_gone_is_made_again_and_another_model_changes_all(folder: PeersFolder) -> None:
    description = engine(write("convert"))
    taken_of(description, folder)
    (folder.models / "out").unlink()
    assert taken_of(description, folder) == ["convert"]
    assert taken_of(description, folder, replace(SOURCE, sha256="def")) == ["make environment", "convert"]


def test_a_failed_step_is_told_in_one_sentence_and_taken_again(folder: PeersFolder) -> None:
    failing = Step("export", ("{python}", "-c", "raise ValueError('no such layer.')"), produces=("models/out",))
    with pytest.raises(SetUpError) as error:
        taken_of(engine(failing), folder)
    log = folder.logs / "peer-environment-export.log"
    assert str(error.value) == f"peer: export failed (ValueError: no such layer); its output is in {log}"
    told: list[str] = []
    with pytest.raises(SetUpError):
        set_up_engine(engine(failing), folder, SOURCE, told.append)
    assert told == ["peer: export"]


def test_a_step_that_makes_nothing_has_failed(folder: PeersFolder) -> None:
    with pytest.raises(SetUpError, match="export ended well and did not write models/out"):
        taken_of(engine(Step("export", ("{python}", "-c", ""), produces=("models/out",))), folder)


def test_a_program_that_is_missing_is_named(folder: PeersFolder) -> None:
    with pytest.raises(
        SetUpError, match=r"export failed \(/no/such/program cannot be run: No such file or directory\)"
    ):
        taken_of(engine(Step("export", ("/no/such/program",))), folder)


def test_the_cause_is_the_last_error_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("ERROR: first.\nERROR: Could not build wheels.\nsome advice\n\n")
    assert cause(log, 1) == "Could not build wheels"
    log.write_text("only this\n")
    assert cause(log, 1) == "only this"
    log.write_text("")
    assert cause(log, 7) == "exit code 7"


def test_a_peer_that_fails_holds_up_no_other(folder: PeersFolder) -> None:
    broken = replace(engine(Step("export", ("{python}", "-c", "raise SystemExit(3)"))), name="broken")
    well = replace(engine(write("convert")), name="well", environment="another")
    told: list[str] = []
    assert set_up_engines([broken, well], folder, SOURCE, told.append) == {"broken": False, "well": True}
    assert told[-1] == "well: ready"
    assert "broken: export failed (exit code 3); its output is in" in told[2]
