"""Turns one JSON object of a request log into a row, under a column map."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.openai_log.columns import ColumnMap, DurationColumn, Paths, as_paths
from quantgate.traces.openai_log.half_characters import whole_text
from quantgate.traces.openai_log.left_out import RowLeftOutError
from quantgate.traces.openai_log.log_row import LogRow, OutputLengthFrom
from quantgate.traces.openai_log.lookup import first_present
from quantgate.traces.openai_log.messages import MessageReader
from quantgate.traces.openai_log.times import LogClock, duration_ns, number_of
from quantgate.traces.openai_log.token_counts import output_length, stated_answers, stated_tokens
from quantgate.traces.record import Message

# A longer text is a description, which may quote a prompt; a tag is a label.
_LONGEST_TAG = 40

_FAILED_WORDS = frozenset({"error", "failed", "failure", "cancelled"})


class RowReader:
    """Reads the rows of one log. Errors are ValueErrors that begin with the field; times must be read in file order."""

    def __init__(self, columns: ColumnMap, settings: ImportSettings) -> None:
        self._columns = columns
        self._count_tokens = settings.count_tokens
        self._clock = LogClock(columns.time.unit)
        self._end_clock = LogClock("auto" if columns.time.unit == "iso" else columns.time.unit)
        self.messages = MessageReader(settings.other_parts)

    def read(self, row: dict[str, Any], line: int) -> LogRow:
        """Raises RowLeftOutError for a row that is no traffic, ValueError for one that is wrong."""
        columns = self._columns
        if not all(condition.holds(row) for condition in columns.only):
            raise RowLeftOutError("not_selected", "the column map's conditions do not select this row")
        self._refuse_failed(row)
        messages, prompt_text = self._prompt(row)
        answer = self._answer(row)
        limit_tokens = stated_tokens(row, columns.max_tokens)
        output_tokens, output_length_from = self._output_length(row, answer, limit_tokens)
        start_ns, end_ns = self._times(row)
        return LogRow(
            line=line,
            request_id=_text(row, columns.id) or f"line-{line}",
            start_ns=start_ns,
            end_ns=end_ns,
            messages=messages,
            prompt_text=prompt_text,
            answer=answer,
            output_tokens=output_tokens,
            output_length_from=output_length_from,
            limit_tokens=limit_tokens or None,
            prompt_tokens=stated_tokens(row, columns.prompt_tokens) or None,
            slo_class=whole_text(columns.slo_class.class_of(row), "class"),
            tags=_tags(row, columns.tags),
            session=_text(row, columns.session),
            user=_text(row, columns.user),
            offered_tools=bool(first_present(row, as_paths(columns.tools))[1]),
            several_answers=stated_answers(row, columns.choices) > 1,
        )

    def _refuse_failed(self, row: dict[str, Any]) -> None:
        path, status = first_present(row, as_paths(self._columns.status))
        number = number_of(status)
        if isinstance(status, str) and status.lower() in _FAILED_WORDS:
            raise RowLeftOutError("failed", f"field {path}: expected a request that succeeded, got {status!r}")
        if number is not None and number >= 400:
            raise RowLeftOutError("failed", f"field {path}: expected a status below 400, got {str(status).strip():.40}")
        path, error = first_present(row, as_paths(self._columns.error))
        if error:
            raise RowLeftOutError("failed", f"field {path}: expected no error")

    def _prompt(self, row: dict[str, Any]) -> tuple[tuple[Message, ...] | None, str | None]:
        path, value = first_present(row, as_paths(self._columns.messages))
        if path and value != []:
            messages = self.messages.read_all(value, path)
            if any(message.content for message in messages):
                return messages, None
            raise RowLeftOutError("without_prompt", f"field {path}: expected at least one message with text")
        path, value = first_present(row, as_paths(self._columns.prompt))
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
            value = value[0]
        if isinstance(value, str) and value:
            return None, whole_text(value, path)
        if isinstance(value, list) and value:
            if all(isinstance(part, int) for part in value):
                raise RowLeftOutError("prompt_of_token_ids", f"field {path}: expected a text, got token ids")
            raise RowLeftOutError("several_prompts", f"field {path}: expected one prompt, got {len(value)}")
        looked_in = as_paths(self._columns.messages)[:2] + as_paths(self._columns.prompt)[:1]
        raise RowLeftOutError(
            "without_prompt",
            f"expected messages or a prompt, got neither (looked in {', '.join(looked_in)} and so on; say in a "
            "column map, --columns FILE, where they are)",
        )

    def _answer(self, row: dict[str, Any]) -> Message | None:
        """The recorded answer where the log has it; other shapes than a text or a message count as not recorded."""
        path, value = first_present(row, as_paths(self._columns.answer))
        if isinstance(value, str):
            return Message("assistant", whole_text(value, path))
        if isinstance(value, dict) and ("content" in value or "tool_calls" in value):
            return self.messages.read({"role": "assistant"} | value, path)
        return None

    def _output_length(
        self, row: dict[str, Any], answer: Message | None, limit_tokens: int | None
    ) -> tuple[int, OutputLengthFrom]:
        stated = stated_tokens(row, self._columns.output_tokens)
        return output_length(
            # Usage counts all answers to a request together.
            None if stated is None else -(-stated // stated_answers(row, self._columns.choices)),
            None if answer is None else answer.content,
            limit_tokens,
            self._count_tokens,
            "usage.completion_tokens, the answer's text, or max_tokens in the request",
        )

    def _times(self, row: dict[str, Any]) -> tuple[int, int | None]:
        """When the request was made and when its answer ended."""
        path, value = first_present(row, as_paths(self._columns.time.path))
        if not path:
            expected = ", ".join(as_paths(self._columns.time.path)[:3])
            raise ValueError(
                f"field {expected.split(', ')[0]}: expected the time of the request, got nothing (looked in {expected} "
                "and so on); say in a column map (--columns FILE) where it is"
            )
        time_ns = _reading(partial(self._clock.to_ns, value), path, value)
        latency_ns = self._latency_ns(row)
        if self._columns.time.marks == "end":
            if latency_ns is None:
                raise ValueError(
                    f"field {path}: this time marks the answer's end, so the request's latency is needed, and the row "
                    "has none; say in the column map where it is (latency)"
                )
            return time_ns - latency_ns, time_ns
        if latency_ns is not None:
            return time_ns, time_ns + latency_ns
        path, value = first_present(row, as_paths(self._columns.end_time))
        if not path:
            return time_ns, None
        end_ns = _reading(partial(self._end_clock.to_ns, value), path, value)
        if end_ns < time_ns:
            raise ValueError(f"field {path}: expected a time not before the request's, got {value!r:.40}")
        return time_ns, end_ns

    def _latency_ns(self, row: dict[str, Any]) -> int | None:
        latency = self._columns.latency
        for column in (latency,) if isinstance(latency, DurationColumn) else latency:
            path, value = first_present(row, as_paths(column.path))
            if path:
                return _reading(partial(duration_ns, value, column.unit), path, value)
        return None


def _reading(read: Callable[[], int], path: str, value: Any) -> int:
    """Adds the field and what was found there to an error."""
    try:
        return read()
    except ValueError as error:
        raise ValueError(f"field {path}: {error}, got {value!r:.40}") from None


def _text(row: dict[str, Any], paths: Paths) -> str | None:
    path, value = first_present(row, as_paths(paths))
    if isinstance(value, dict):
        # The Responses API writes a conversation as an object with its id.
        value = value.get("id")
    return whole_text(str(value), path) if isinstance(value, str | int) and str(value) else None


def _tags(row: dict[str, Any], paths: Paths) -> tuple[str, ...]:
    path, value = first_present(row, as_paths(paths))
    values = value if isinstance(value, list) else [value]
    tags = (str(tag) for tag in values if isinstance(tag, str | int))
    return tuple(whole_text(tag, path) for tag in tags if 0 < len(tag) <= _LONGEST_TAG)
