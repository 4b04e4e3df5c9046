"""The front door: reads a trace file of any registered format."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

# Importing a reader registers its format.
from quantgate.traces import azure_reader as azure_reader
from quantgate.traces import burstgpt_reader as burstgpt_reader
from quantgate.traces import mooncake_reader as mooncake_reader
from quantgate.traces import native_reader as native_reader
from quantgate.traces.array_entries import read_array, starts_with_array
from quantgate.traces.consistency import check_consistency
from quantgate.traces.first_line import array_refusal, require_whole_object
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.openai_log import log_format
from quantgate.traces.otel_spans import span_format as span_format
from quantgate.traces.record import TraceRecord
from quantgate.traces.redacted import redact_records
from quantgate.traces.registry import ParsedTrace, TraceFormat, detect_trace_format, trace_format, trace_formats
from quantgate.traces.sharegpt import conversation_format as conversation_format
from quantgate.traces.source_text import read_lines
from quantgate.traces.transform_record import TransformRecord
from quantgate_engine.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ImportedTrace:
    """A trace's records in order of time, and what was done to the file's rows on the way (see `build_plan`)."""

    records: list[TraceRecord]
    steps: tuple[TransformRecord, ...]


def import_trace(path: Path, settings: ImportSettings | None = None) -> ImportedTrace:
    """Reads a trace file.

    Raises ConfigurationError with file, line, field and what was expected: for a missing, empty or undecodable file,
    a row that breaks its format, and rows that do not fit together (see `check_consistency`).
    """
    settings = settings or ImportSettings()
    chosen, parsed = open_trace(path, settings)
    records = check_consistency(parsed.rows, str(path))
    if not records:
        raise no_rows(path)
    redacting = chosen.redacted_by_default if settings.redact is None else settings.redact
    if not redacting:
        return ImportedTrace(records, tuple(parsed.steps))
    redacted, step = redact_records(records)
    return ImportedTrace(redacted, (*parsed.steps, step))


def read_trace(path: Path, format_name: str | None = None) -> list[TraceRecord]:
    """The records of a trace, in order of time, read as its format does by default (see `import_trace`)."""
    return import_trace(path, ImportSettings(format_name=format_name)).records


def open_trace(path: Path, settings: ImportSettings) -> tuple[TraceFormat, ParsedTrace]:
    """The format of a file and its rows, which are not yet known to fit together.

    Raises ConfigurationError for a missing, empty or undecodable file; a row that is wrong may raise later.
    """
    source = str(path)
    in_array = starts_with_array(path)
    lines = read_array(path) if in_array else read_lines(path)
    first_line = next(lines, None)
    if first_line is None:
        raise ConfigurationError(f"{path}: the trace is empty; expected at least one request.")
    if in_array:
        _require_array_format(first_line.text, source, settings)
    require_whole_object(first_line.text, source)
    chosen = _format_of(first_line.text, source, settings)
    return chosen, chosen.read(chain([first_line], lines), source, settings)


def no_rows(path: Path) -> ConfigurationError:
    """What is wrong with a trace that has nothing behind its header."""
    return ConfigurationError(f"{path}: the trace has a header and no rows; expected at least one request.")


def _require_array_format(first_entry: str, source: str, settings: ImportSettings) -> None:
    """Raises ConfigurationError unless the format, named or told by the first entry, is one that takes arrays."""
    if settings.format_name is not None:
        taken = trace_format(settings.format_name).takes_arrays
    else:
        taken = settings.columns is None and any(
            each.takes_arrays and each.recognises(first_entry) for each in trace_formats().values()
        )
    if not taken:
        raise array_refusal(source)


def _format_of(first_line: str, source: str, settings: ImportSettings) -> TraceFormat:
    if settings.format_name is not None:
        chosen = trace_format(settings.format_name)
    elif settings.columns is not None:
        chosen = trace_format(log_format.NAME)
    else:
        chosen = detect_trace_format(first_line, source)
    if settings.columns is not None and not chosen.takes_column_map:
        raise ConfigurationError(
            f"{source}: a column map was given, but the format {chosen.name} has fixed columns; leave the map out, or "
            f"name the format {log_format.NAME}."
        )
    if settings.block_tokens is not None and not chosen.takes_block_tokens:
        raise ConfigurationError(
            f"{source}: a block size was given (block_tokens, --block-tokens), but the format {chosen.name} has no "
            "blocks, or tells their size itself; leave it out."
        )
    return chosen
