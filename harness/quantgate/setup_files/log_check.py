"""Whether a log is there and of a known format, before a suite names it."""

from __future__ import annotations

from pathlib import Path

# Importing the reader registers the formats.
from quantgate.traces import reader as reader
from quantgate.traces.registry import detect_trace_format
from quantgate_engine.errors import ConfigurationError


def check_log(log: Path, columns: Path | None) -> None:
    """Raises ConfigurationError where the log or its column map is missing, or nothing recognises the first line.

    Only the first line is read: a log may be large, and `quantgate run` reads it all.
    """
    for path in (log, columns):
        if path is not None and not path.is_file():
            raise ConfigurationError(f"{path}: there is no such file; check the path.")
    if columns is not None:
        return
    with log.open(encoding="utf-8-sig", errors="replace") as lines:
        first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise ConfigurationError(f"{log}: the log is empty; expected at least one request.")
    detect_trace_format(first.rstrip("\r\n"), str(log))
