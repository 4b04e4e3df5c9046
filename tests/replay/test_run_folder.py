"""Runs are stored whole or not at all, and read back exactly or with a clear error."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.replay.request_rows import request_row, request_table, step_table, unanswered_row

from quantgate.store.manifest import ArmManifest, Environment, ModelManifest, RunManifest
from quantgate.store.run_folder import RunFolder, load_run
from quantgate.store.schemas import QUALITY
from quantgate_engine.errors import ConfigurationError, RunError

NOW = datetime(2026, 11, 29, 17, 42, 5, tzinfo=UTC)
ARM = ArmManifest(
    arm_id="fp16", role="baseline", target="bundled", model="tiny", scheme="fp16", kv_dtype="bf16",
    compute_dtype="bf16", head_dtype="bf16", weight_bytes=1, linear_weight_bytes=1, load_seconds=1.0,
    kernel_set="reference", kernel_paths={},
)  # fmt: skip


def manifest_of(folder: RunFolder, **changes: Any) -> RunManifest:
    fields: dict[str, Any] = {
        "run_id": folder.run_id, "state": "complete", "phase": "done", "created_utc": NOW.isoformat(),
        "command": ["quantgate", "run"], "seed": 7, "arms": [ARM],
        "model": ModelManifest(name="tiny", weights_sha256="0" * 64, tokenizer_sha256="1" * 64),
        "environment": Environment(
            python="3.11", platform="linux", cpu="test", cores=2, threads=2, memory_bytes=1, isa=[], device="cpu",
            versions={},
        ),
    }  # fmt: skip
    return RunManifest(**fields | changes)


def new_folder(tmp_path: Path, *, keep_text: bool = True) -> RunFolder:
    return RunFolder.create(tmp_path / "results", now=NOW, random=Random(1), keep_text=keep_text)


def store_complete_run(tmp_path: Path, **options: Any) -> RunFolder:
    folder = new_folder(tmp_path, **options)
    folder.write_manifest(manifest_of(folder))
    folder.write_table("requests", texts())
    folder.write_table("steps", step_table({"duration_ns": 5, "decode_tokens": 2}))
    folder.write_table("quality", answers())
    return folder


def texts() -> pa.Table:
    return request_table(
        request_row("a", tags=["rag"], prompt_text="Where?", output_text="Here."),
        unanswered_row("b", "failed", error="boom", prompt_text="Why?"),
    )


def answers() -> pa.Table:
    row = {
        "arm_id": "fp16", "tier": "task", "task": "rag", "item_id": "a", "cluster_id": "a", "metric": "correct",
        "value": 1.0, "floor": 0.25, "output_text": "Here.", "expected_text": "Here", "detail": "{}",
    }  # fmt: skip
    return pa.Table.from_pylist([row], schema=QUALITY)


def test_a_run_reads_back_as_it_was_written(tmp_path: Path) -> None:
    folder = store_complete_run(tmp_path)
    run = load_run(folder.path)
    assert run.manifest == manifest_of(folder)
    assert run.requests.equals(texts(), check_metadata=True)
    assert run.quality.equals(answers(), check_metadata=True)
    assert run.steps.column("decode_tokens").to_pylist() == [2]
    assert pq.ParquetFile(folder.path / "requests.parquet").metadata.row_group(0).column(0).compression == "ZSTD"


def test_run_ids_sort_by_time_and_a_taken_one_is_passed_over(tmp_path: Path) -> None:
    first, second = new_folder(tmp_path), new_folder(tmp_path)
    assert first.run_id.startswith("20261129T174205Z-")
    assert first.path.is_dir()
    assert second.path.is_dir()
    assert first.run_id != second.run_id


def test_a_table_is_rewritten_whole_and_no_temporary_file_stays(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    folder.write_table("requests", request_table(request_row("a")))
    folder.write_table("requests", texts())
    assert pq.read_table(folder.path / "requests.parquet").num_rows == 2
    assert [path.name for path in folder.path.iterdir()] == ["requests.parquet"]


@pytest.mark.parametrize(
    ("code", "reason"), [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "read-only"), (errno.EIO, "error")]
)
def test_a_write_that_fails_leaves_the_last_complete_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, reason: str
) -> None:
    folder = store_complete_run(tmp_path)

    def refuse(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(RunError, match=rf"Cannot write .*requests\.parquet: .*{reason}"):
            folder.write_table("requests", request_table())
        with pytest.raises(RunError, match=r"Cannot write .*verdict\.json"):
            folder.write_text("verdict.json", "{}")
    assert load_run(folder.path).requests.num_rows == 2
    assert sorted(path.name for path in folder.path.iterdir()) == [
        "quality.parquet",
        "requests.parquet",
        "run.json",
        "steps.parquet",
    ]


def test_a_folder_in_the_place_of_a_file_is_told_with_what_to_do(tmp_path: Path) -> None:
    folder = store_complete_run(tmp_path)
    (folder.path / "verdict.json").mkdir()
    with pytest.raises(
        ConfigurationError, match=r"verdict\.json is a folder where a file is to be written; move it or name another"
    ):
        folder.write_text("verdict.json", "{}")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_is_said_in_one_sentence_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    folder = store_complete_run(tmp_path)
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    for name in ("requests.parquet", "run.json"):
        (folder.path / f".{name}.partial").symlink_to("/dev/full")
    full = r"^Cannot write .*{}: the disk is full; free some space and run again\.$"
    with pytest.raises(RunError, match=full.format(r"requests\.parquet")):
        folder.write_table("requests", request_table())
    with pytest.raises(RunError, match=full.format(r"run\.json")):
        folder.write_manifest(manifest_of(folder, seed=8))
    assert {path.name: path.read_bytes() for path in folder.path.iterdir()} == before


def test_results_that_cannot_be_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(ConfigurationError, match="not a folder"):
        new_folder(tmp_path)


def test_no_text_keeps_prompts_and_answers_out_of_the_files(tmp_path: Path) -> None:
    folder = store_complete_run(tmp_path, keep_text=False)
    run = load_run(folder.path)
    assert run.requests.column("prompt_text").null_count == 2
    assert run.requests.column("output_text").null_count == 2
    assert run.requests.column("output_token_ids").to_pylist() == [[], []]
    assert run.requests.column("output_tokens").to_pylist() == [3, 0]
    assert run.quality.column("output_text").null_count == 1
    assert run.quality.column("value").to_pylist() == [1.0]
    for path in folder.path.glob("*.parquet"):
        assert b"Here" not in path.read_bytes()


def test_a_table_of_another_schema_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the table for steps has the columns"):
        new_folder(tmp_path).write_table("steps", texts())


def test_an_interrupted_run_loads_as_far_as_it_came(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    folder.write_manifest(manifest_of(folder, state="interrupted", phase="replay"))
    folder.write_table("requests", texts())
    run = load_run(folder.path)
    assert run.requests.num_rows == 2
    assert run.quality.num_rows == 0
    assert run.quality.schema.equals(QUALITY)


def test_a_complete_run_must_have_every_table(tmp_path: Path) -> None:
    folder = store_complete_run(tmp_path)
    (folder.path / "steps.parquet").unlink()
    with pytest.raises(RunError, match=r"steps\.parquet is missing although the run is complete"):
        load_run(folder.path)


def test_a_folder_without_a_manifest_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a run folder: it has no run\.json"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "quantgate.run/9"}, r"field schema: expected 'quantgate\.run/1', got 'quantgate\.run/9'"),
        ({"seed": "seven"}, "field seed"),
        ({"colour": 1}, "colour"),
    ],
)
def test_a_manifest_that_this_version_does_not_know_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    folder = store_complete_run(tmp_path)
    path = folder.path / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RunError, match=message):
        load_run(folder.path)


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[]", b""])
def test_a_damaged_manifest_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = store_complete_run(tmp_path)
    (folder.path / "run.json").write_bytes(content)
    with pytest.raises(RunError, match=r"run\.json"):
        load_run(folder.path)


@pytest.mark.parametrize("keep", [0, 3, 200, -9])
def test_a_damaged_table_is_refused(tmp_path: Path, keep: int) -> None:
    folder = store_complete_run(tmp_path)
    path = folder.path / "requests.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(RunError, match=r"requests\.parquet cannot be read as a Parquet table"):
        load_run(folder.path)


def test_unknown_versions_and_columns_of_a_table_are_named(tmp_path: Path) -> None:
    folder = store_complete_run(tmp_path)
    path = folder.path / "requests.parquet"
    pq.write_table(texts().replace_schema_metadata({"quantgate_schema_version": "99"}), path)
    with pytest.raises(RunError, match="has schema version 99; this quantgate reads version 3"):
        load_run(folder.path)
    pq.write_table(texts().replace_schema_metadata({}), path)
    with pytest.raises(RunError, match="has schema version none"):
        load_run(folder.path)
    pq.write_table(
        texts().rename_columns({"sent_ns": "went_ns"}).replace_schema_metadata(texts().schema.metadata), path
    )
    with pytest.raises(RunError, match="these differ: sent_ns, went_ns"):
        load_run(folder.path)
