"""One table of a run as a Parquet file: zstd, with its schema version, checked when read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from quantgate.store.atomic_file import write_atomically
from quantgate.store.schemas import ADDED_COLUMNS, SCHEMA_VERSION, TABLES
from quantgate_engine.errors import RunError

_VERSION_KEY = b"quantgate_schema_version"


def write_table(path: Path, table_name: str, table: pa.Table) -> None:
    """Writes the table atomically. Raises RunError where the disk refuses, ValueError for a table of another schema."""
    schema = TABLES[table_name]
    if not table.schema.equals(schema):
        raise ValueError(f"the table for {table_name} has the columns {table.schema.names}, not {schema.names}")
    versioned = table.replace_schema_metadata(schema.metadata)
    write_atomically(path, lambda temporary: pq.write_table(versioned, temporary, compression="zstd"))


def read_table(path: Path, table_name: str) -> pa.Table:
    """The table; raises RunError for a damaged file and for a version or columns that this version does not know."""
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise RunError(f"{path} cannot be read as a Parquet table ({reason}); the run must be repeated.") from error
    version = (table.schema.metadata or {}).get(_VERSION_KEY, b"none").decode()
    if version != str(SCHEMA_VERSION):
        raise RunError(
            f"{path} has schema version {version}; this quantgate reads version {SCHEMA_VERSION}. "
            "Read it with the quantgate version that wrote it, or repeat the run."
        )
    schema = TABLES[table_name]
    for name in ADDED_COLUMNS.get(table_name, ()):
        if name not in table.schema.names:
            field = schema.field(name)
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    if not table.schema.equals(schema):
        differing = _differing_columns(table.schema, schema)
        raise RunError(
            f"{path} does not hold the columns of schema version {SCHEMA_VERSION}; "
            f"these differ: {', '.join(differing) or 'their order'}."
        )
    # The reader adds field ids of its own; the schema's units and clocks are what callers should see.
    return table.cast(schema)


def row_count(path: Path) -> int:
    """Rows of a table that this process wrote."""
    return int(pq.read_metadata(path).num_rows)


def _differing_columns(found: pa.Schema, expected: pa.Schema) -> list[str]:
    shared = set(found.names) & set(expected.names)
    alone = set(found.names) ^ set(expected.names)
    return sorted(alone | {name for name in shared if not found.field(name).equals(expected.field(name))})
