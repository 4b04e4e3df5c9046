"""Whether a run's tables are those that its `run.json` speaks of: whole, without repetitions, of its own arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from quantgate.store.manifest import RunManifest
from quantgate_engine.counted import counted
from quantgate_engine.errors import RunError

_KEYS: dict[str, tuple[str, ...]] = {
    "requests": ("arm_id", "pass_index", "request_id"),
    "steps": ("arm_id", "pass_index", "block_index", "step_index"),
    "quality": ("arm_id", "tier", "task", "item_id", "metric"),
}
"""What tells the rows of a table apart."""


def check_tables(folder: Path, manifest: RunManifest, tables: Mapping[str, pa.Table]) -> None:
    """Raises RunError, naming the file, for rows that are missing, repeated or of an arm that the run does not have."""
    arms = [arm.arm_id for arm in manifest.arms]
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        _check_count(path, table.num_rows, manifest.table_rows.get(name))
        _check_arms(path, table, arms)
        if name in _KEYS:
            _check_distinct(path, table, _KEYS[name])


def _check_count(path: Path, found: int, written: int | None) -> None:
    if written is not None and found != written:
        raise RunError(
            f"{path} holds {counted(found, 'row')}, but by run.json the run wrote {written}; copy the whole folder "
            "again, or repeat the run."
        )


def _check_arms(path: Path, table: pa.Table, arms: Sequence[str]) -> None:
    strangers = sorted({str(arm) for arm in table.column("arm_id").unique().to_pylist()}.difference(arms))
    if strangers:
        raise RunError(
            f"{path} holds rows of arm {strangers[0]!r}, which run.json does not name ({', '.join(arms)}); the two are "
            "not of one run: copy the whole folder again."
        )


def _check_distinct(path: Path, table: pa.Table, key: Sequence[str]) -> None:
    repeated = table.num_rows - table.group_by(list(key)).aggregate([]).num_rows
    if repeated:
        raise RunError(
            f"{path} holds {counted(repeated, 'row')} twice (the same {', '.join(key)}); copy the whole folder again, "
            "or repeat the run."
        )
