"""A stored run that was edited, cut or mixed up is told, not judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quantgate.store.run_folder import LoadedRun, RunFolder, load_run, stored_rows
from quantgate.store.table_file import read_table, write_table
from quantgate_engine.errors import RunError

Change = Callable[[pa.Table], pa.Table]


@pytest.fixture
def folder(tmp_path: Path, run_of: Callable[..., LoadedRun], arm: Any) -> Path:
    """A complete run as `quantgate run` leaves it."""
    run = run_of(arm("fp16", "baseline"), arm("other"), requests=12)
    stored = RunFolder(tmp_path, "run")
    for name in ("requests", "steps", "quality"):
        stored.write_table(name, getattr(run, name))
    stored.write_manifest(run.manifest.model_copy(update={"table_rows": stored_rows(tmp_path)}))
    return tmp_path


def renamed(table: pa.Table) -> pa.Table:
    arms = ["elsewhere" if arm == "other" else arm for arm in table["arm_id"].to_pylist()]
    return table.set_column(0, table.schema.field(0), pa.array(arms))


def test_a_run_as_it_was_written_is_read(folder: Path) -> None:
    assert load_run(folder).requests.num_rows == 24


@pytest.mark.parametrize("table", ["requests", "quality"])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda table: table.slice(0, table.num_rows // 2), r"holds \d+ rows, but by run.json the run wrote \d+"),
        (lambda table: table.slice(0, 0), r"holds 0 rows, but by run.json the run wrote \d+"),
        (
            lambda table: pa.concat_tables([table.slice(1), table.slice(1, 1)]),
            r"holds 1 row twice \(the same arm_id, ",
        ),
        (renamed, r"holds rows of arm 'elsewhere', which run.json does not name \(fp16, other\)"),
    ],
)
def test_a_table_that_is_not_the_runs_own_is_told(folder: Path, table: str, change: Change, sentence: str) -> None:
    path = folder / f"{table}.parquet"
    write_table(path, table, change(read_table(path, table)))
    with pytest.raises(RunError, match=sentence) as told:
        load_run(folder)
    assert str(path) in str(told.value)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"arms": []}, r"field arms: expected at least 1 item"),
        ({"seed": -5}, r"field seed: expected a value of at least 0, got -5"),
        ({"run_id": "../../../tmp/evil"}, r"field run_id: expected text that matches .*, got '../../../tmp/evil'"),
        ({"run_id": ".."}, r"field run_id: expected text that matches"),
    ],
)
def test_a_manifest_that_no_run_writes_is_told(folder: Path, changes: dict[str, Any], sentence: str) -> None:
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(RunError, match=sentence):
        load_run(folder)


def test_arms_of_one_name_are_told(folder: Path) -> None:
    path = folder / "run.json"
    document = json.loads(path.read_text())
    document["arms"][1]["arm_id"] = "fp16"
    path.write_text(json.dumps(document))
    with pytest.raises(RunError, match="field arms: two arms are called 'fp16'"):
        load_run(folder)


def test_brackets_without_end_are_told(folder: Path) -> None:
    (folder / "run.json").write_text("[" * 200_000)
    with pytest.raises(RunError, match=r"run.json cannot be read as JSON \(it is nested too deeply\)"):
        load_run(folder)
