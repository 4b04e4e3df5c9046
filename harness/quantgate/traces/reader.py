"""The front door: reads a trace file of any registered format."""

from __future__ import annotations

from pathlib import Path

# Importing a reader registers its format.
from quantgate.traces import azure_reader as azure_reader
from quantgate.traces import native_reader as native_reader
from quantgate.traces.consistency import check_consistency
from quantgate.traces.record import TraceRecord
from quantgate.traces.registry import detect_trace_format, trace_format
from quantgate.traces.source_text import read_bytes, split_lines
from quantgate_engine.errors import ConfigurationError


def read_trace(path: Path, format_name: str | None = None) -> list[TraceRecord]:
    """The records of a trace, in order of time.

    format_name: a name of `trace_formats()`; None detects it by the file's first line.
    Raises ConfigurationError with file, line, field and what was expected: for a missing, empty or undecodable file,
    a row that breaks its format, and rows that do not fit together (see `check_consistency`).
    """
    source = path.name
    lines = split_lines(read_bytes(path), source)
    if not lines:
        raise ConfigurationError(f"{path}: the trace is empty; expected at least one request.")
    chosen = detect_trace_format(lines[0].text, source) if format_name is None else trace_format(format_name)
    records = check_consistency(chosen.parse(lines, source), source)
    if not records:
        raise ConfigurationError(f"{path}: the trace has a header and no rows; expected at least one request.")
    return records
