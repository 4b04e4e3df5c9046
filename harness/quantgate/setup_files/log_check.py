"""Whether a log can be replayed, before a suite names it."""

from __future__ import annotations

from pathlib import Path

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.openai_log.columns import load_column_map
from quantgate.traces.reader import import_trace
from quantgate_engine.errors import ConfigurationError


def check_log(log: Path, columns: Path | None) -> None:
    """Reads the whole log as a run of the suite would; only the redaction, which refuses nothing, is spared.

    Raises ConfigurationError where the log or its column map is missing or wrong, with file, line and field.
    """
    for path in (log, columns):
        if path is not None and not path.is_file():
            raise ConfigurationError(f"{path}: there is no such file; check the path.")
    import_trace(log, ImportSettings(columns=None if columns is None else load_column_map(columns), redact=False))
