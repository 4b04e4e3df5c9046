"""Reads the lines of a file of spans into rows, and counts the spans that are no request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.json_object import json_object
from quantgate.traces.openai_log.left_out import RowLeftOutError
from quantgate.traces.openai_log.log_rows import LogRows
from quantgate.traces.otel_spans.names import other_kind
from quantgate.traces.otel_spans.span import Span, is_batch, raw_spans_of, span_of
from quantgate.traces.otel_spans.span_reader import SpanReader
from quantgate.traces.source_line import SourceLine
from quantgate_engine.errors import ConfigurationError

_NESTED = "inside_another_request"


@dataclass(frozen=True, slots=True)
class _Located:
    """place: such as `line 3, span 7`."""

    line: int
    place: str
    span: Span


def read_spans(lines: Iterable[SourceLine], source: str, settings: ImportSettings) -> LogRows:
    """Raises ConfigurationError naming file, line, span and field, also for a file of which nothing is left."""
    found = LogRows()
    reader = SpanReader(settings)
    found.dropped_parts = reader.dropped_parts
    read: list[_Located] = []
    for located in _spans(lines, source, found):
        kind = other_kind(located.span)
        if kind is not None:
            found.leave_out(kind, f"{located.place}: expected a request to a model that answers in text")
            continue
        try:
            found.rows.append(
                reader.read(located.span, located.line, located.place.replace(", ", "-").replace(" ", "-"))
            )
        except RowLeftOutError as left_out:
            if settings.strict:
                raise ConfigurationError(
                    f"{source}, {located.place}: {left_out}; mend or remove the span, or read the file without strict."
                ) from None
            found.leave_out(left_out.kind, f"{located.place}: {left_out}")
        except ValueError as error:
            raise ConfigurationError(f"{source}, {located.place}, {error}.") from None
        except RecursionError:
            raise ConfigurationError(f"{source}, {located.place}: expected attributes of sensible depth.") from None
        else:
            read.append(located)
    _leave_out_nested(found, read)
    found.require_some(source, "spans")
    return found


def _spans(lines: Iterable[SourceLine], source: str, found: LogRows) -> Iterator[_Located]:
    for line in lines:
        place = f"line {line.number}"
        row = json_object(line.text, f"{source}, {place}")
        batch = is_batch(row)
        found.shape = found.shape or ("OTLP" if batch else "spans")
        try:
            for number, raw in enumerate(raw_spans_of(row), start=1):
                place = f"line {line.number}, span {number}" if batch else place
                yield _Located(line.number, place, span_of(raw))
        except ValueError as error:
            raise ConfigurationError(f"{source}, {place}, {error}.") from None
        except RecursionError:
            raise ConfigurationError(f"{source}, {place}: expected attributes of sensible depth.") from None


def _leave_out_nested(found: LogRows, read: list[_Located]) -> None:
    """Two instrumentations at once, of a gateway's client and of the client below it, record one request twice.

    The outer span stays: it is what the application waited for.
    """
    names = {(each.span.trace_id, each.span.span_id) for each in read if each.span.span_id is not None}
    outermost = []
    for located, row in zip(read, found.rows, strict=True):
        if (located.span.trace_id, located.span.parent_id) in names:
            found.leave_out(_NESTED, f"{located.place}: expected a request of its own, got one inside another")
        else:
            outermost.append(row)
    found.rows = outermost
