"""Turns one span of a request into a row of a log."""

from __future__ import annotations

from typing import Any

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.openai_log.half_characters import whole_text
from quantgate.traces.openai_log.left_out import RowLeftOutError
from quantgate.traces.openai_log.log_row import LogRow
from quantgate.traces.openai_log.lookup import first_present
from quantgate.traces.openai_log.token_counts import output_length, stated_answers, stated_tokens
from quantgate.traces.otel_spans import names
from quantgate.traces.otel_spans.span import Span
from quantgate.traces.otel_spans.span_clock import SpanClock
from quantgate.traces.otel_spans.span_texts import SpanTexts

# OTLP's number and name, and what SDKs print.
_FAILED = frozenset({"2", "error", "status_code_error", "statuscode.error"})


class SpanReader:
    """Reads the requests of one file. Errors are ValueErrors that begin with the field of the span."""

    def __init__(self, settings: ImportSettings) -> None:
        self._count_tokens = settings.count_tokens
        self._clock = SpanClock()
        self._texts = SpanTexts(settings.other_parts)
        self.dropped_parts = self._texts.reader.dropped_parts

    def read(self, span: Span, line: int, place: str) -> LogRow:
        """place: a name for a span without an id. Raises RowLeftOutError for one that is no traffic."""
        _refuse_failed(span)
        row = {"attributes": span.attributes}
        events = span.events()
        messages, prompt_text = self._texts.prompt(span, events)
        prompt_tokens = stated_tokens(row, names.in_attributes(names.INPUT_TOKENS))
        if messages is None and prompt_text is None and not prompt_tokens:
            raise RowLeftOutError(
                "without_prompt", "expected messages, a prompt or gen_ai.usage.input_tokens; got none of them"
            )
        answer, answers = self._texts.answer(span, events)
        answers = max(1, answers, stated_answers(row, names.in_attributes(names.CHOICES)))
        limit_tokens = stated_tokens(row, names.in_attributes(names.MAX_TOKENS))
        stated = stated_tokens(row, names.in_attributes(names.OUTPUT_TOKENS))
        output_tokens, output_length_from = output_length(
            # Usage counts all answers to a request together.
            None if stated is None else -(-stated // answers),
            None if answer is None else answer.content,
            limit_tokens,
            self._count_tokens,
            "gen_ai.usage.output_tokens, the answer's text, or gen_ai.request.max_tokens",
        )
        start_ns, end_ns = self._times(span)
        return LogRow(
            line=line,
            request_id=place if span.span_id is None else whole_text(span.span_id, "span_id"),
            start_ns=start_ns,
            end_ns=end_ns,
            messages=messages,
            prompt_text=prompt_text,
            answer=answer,
            output_tokens=output_tokens,
            output_length_from=output_length_from,
            limit_tokens=limit_tokens or None,
            prompt_tokens=prompt_tokens or None,
            slo_class="interactive",
            tags=(),
            session=_text(span, names.CONVERSATION),
            user=_text(span, names.USER),
            offered_tools=bool(first_present(span.attributes, names.TOOLS)[1]),
            several_answers=answers > 1,
        )

    def _times(self, span: Span) -> tuple[int, int | None]:
        field, value = span.start
        if not field:
            raise ValueError("field start_time: expected the time at which the span began, got nothing")
        start_ns = self._clock.to_ns(field, value)
        field, value = span.end
        # OTLP writes 0 for an end that is not known.
        if not field or value in (0, "0", ""):
            return start_ns, None
        end_ns = self._clock.to_ns(field, value)
        if end_ns < start_ns:
            raise ValueError(f"field {field}: expected a time not before the span's start, got {value!r:.40}")
        return start_ns, end_ns


def _refuse_failed(span: Span) -> None:
    status = span.status
    code = status.get("code", status.get("status_code")) if isinstance(status, dict) else status
    if str(code).lower() in _FAILED:
        raise RowLeftOutError("failed", f"field status: expected a request that succeeded, got {str(code)!r}")
    path, kind = first_present(span.attributes, ("error.type",))
    if kind:
        raise RowLeftOutError("failed", f"field attributes.{path}: expected no error")
    path, reasons = first_present(span.attributes, names.FINISH_REASONS)
    # A list, the only reason, or a list as JSON in a text.
    if reasons in ("error", '["error"]') or (isinstance(reasons, list) and "error" in reasons):
        raise RowLeftOutError("failed", f"field attributes.{path}: expected an answer that came to an end, got 'error'")


def _text(span: Span, paths: tuple[str, ...]) -> str | None:
    path, value = first_present(span.attributes, paths)
    usable: Any = isinstance(value, str | int) and not isinstance(value, bool) and value != ""
    return whole_text(str(value), f"attributes.{path}") if usable else None
