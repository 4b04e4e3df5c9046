"""`results/<run id>/`: where a run is written while it happens, and read back afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random

import pyarrow as pa
from pydantic import ValidationError

from quantgate.json_text import parse_json
from quantgate.problem import first_problem
from quantgate.store.atomic_file import write_error, write_text_atomically
from quantgate.store.manifest import MANIFEST_SCHEMA, RunManifest
from quantgate.store.redaction import manifest_without_text, without_text
from quantgate.store.results_folder import not_a_folder
from quantgate.store.run_checks import check_tables
from quantgate.store.run_id import new_run_id
from quantgate.store.schemas import OPTIONAL_TABLES, TABLES
from quantgate.store.table_file import read_table, row_count, write_table
from quantgate_engine.errors import ConfigurationError, RunError

MANIFEST_FILE = "run.json"


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A stored run. A run that ended early has empty tables for the phases that it did not reach."""

    manifest: RunManifest
    requests: pa.Table
    steps: pa.Table
    quality: pa.Table
    server_metrics: pa.Table = field(default_factory=TABLES["server_metrics"].empty_table)
    judgements: pa.Table = field(default_factory=TABLES["judgements"].empty_table)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Writes one run. Every write replaces a whole file, so that a crash leaves the last complete state."""

    path: Path
    run_id: str
    keep_text: bool = True

    @classmethod
    def create(cls, results: Path, *, now: datetime, random: Random, keep_text: bool = True) -> RunFolder:
        """Makes a new folder under `results`.

        Raises ConfigurationError where `results` is a file, RunError where the system refuses.
        """
        run_id = new_run_id(now, random)
        path = results / run_id
        try:
            results.mkdir(parents=True, exist_ok=True)
            path.mkdir()
        except FileExistsError:
            if not results.is_dir():
                raise not_a_folder(results) from None
            return cls.create(results, now=now, random=random, keep_text=keep_text)
        except OSError as error:
            raise write_error(path, error) from error
        return cls(path, run_id, keep_text)

    def write_manifest(self, manifest: RunManifest) -> None:
        """Writes `run.json`, without words that may quote a prompt where the run keeps no text."""
        kept = manifest if self.keep_text else manifest_without_text(manifest)
        self.write_text(MANIFEST_FILE, kept.model_dump_json(by_alias=True, indent=2) + "\n")

    def write_table(self, table_name: str, table: pa.Table) -> None:
        """Writes `requests`, `steps` or `quality`, without its text columns where the run keeps no text."""
        kept = table if self.keep_text else without_text(table_name, table)
        write_table(_table_path(self.path, table_name), table_name, kept)

    def write_text(self, file_name: str, text: str) -> Path:
        """Writes another file of the run (`verdict.json`, `report.html`) and returns its path."""
        path = self.path / file_name
        write_text_atomically(path, text)
        return path


def load_run(path: Path) -> LoadedRun:
    """Reads a run back.

    Raises ConfigurationError where `path` is no run folder; RunError for a damaged or missing file, for tables that are
    not those of its manifest, or for a schema version that this version does not know.
    """
    manifest_path = path / MANIFEST_FILE
    if not manifest_path.is_file():
        raise ConfigurationError(
            f"{path} is not a run folder: it has no {MANIFEST_FILE}; name a folder under results/."
        )
    manifest = _read_manifest(manifest_path)
    tables = {name: _read_or_empty(path, name, manifest) for name in TABLES}
    check_tables(path, manifest, tables)
    return LoadedRun(manifest=manifest, **tables)


def stored_rows(path: Path) -> dict[str, int]:
    """How many rows each table of a run has on the disk."""
    return {name: row_count(_table_path(path, name)) for name in TABLES if _table_path(path, name).is_file()}


def _read_manifest(path: Path) -> RunManifest:
    try:
        document = parse_json(path.read_bytes())
    except (ValueError, OSError) as error:
        raise RunError(f"{path} cannot be read as JSON ({error}); the run must be repeated.") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != MANIFEST_SCHEMA:
        raise RunError(
            f"{path}, field schema: expected {MANIFEST_SCHEMA!r}, got {schema!r}. "
            "Read it with the quantgate version that wrote it, or repeat the run."
        )
    try:
        return RunManifest.model_validate(document)
    except ValidationError as error:
        problem = first_problem(error, document, RunManifest)
        raise RunError(problem.sentence(str(path))) from error


def _read_or_empty(path: Path, table_name: str, manifest: RunManifest) -> pa.Table:
    table_path = _table_path(path, table_name)
    if table_path.is_file():
        return read_table(table_path, table_name)
    if manifest.state == "complete" and table_name not in OPTIONAL_TABLES:
        raise RunError(
            f"{table_path} is missing although the run is complete; copy the whole folder, or repeat the run."
        )
    return TABLES[table_name].empty_table()


def _table_path(folder: Path, table_name: str) -> Path:
    return folder / f"{table_name}.parquet"
