"""What the first row of a file tells: which of the formats of JSON objects it is, or that no format is written so."""

from __future__ import annotations

import json
from typing import Any

from quantgate_engine.errors import ConfigurationError

_LOG_KEYS = frozenset(
    {
        "timestamp", "time", "ts", "@timestamp", "created", "created_at", "start_time", "startTime",
        "request", "request_body", "requestBody", "body", "response", "response_body", "usage", "choices",
        "model", "completion_tokens",
    }
)  # fmt: skip
_CONVERSATION = frozenset({"messages", "prompt"})
_BLOCKS = "hash_ids"

# What the collector's file exporter writes: a batch of one of these. Only spans are traffic, which their reader says.
_EXPORTS = frozenset({"resourceSpans", "resource_spans", "resourceLogs", "resourceMetrics"})
_SPAN_IDS = frozenset({"span_id", "spanId"})


def is_request_log(first_line: str) -> bool:
    """Whether the line is a JSON object with a key that request logs have, and without our own format's `offset`.

    So is a conversation without any time and without our own `id`: a log that keeps its times elsewhere, if anything.
    """
    row = _foreign_object(first_line)
    if row is None or _BLOCKS in row or _has_conversations(row) or _has_spans(row):
        return False
    return not _LOG_KEYS.isdisjoint(row) or ("id" not in row and not _CONVERSATION.isdisjoint(row))


def is_block_trace(first_line: str) -> bool:
    """Whether the line is a JSON object that tells the ids of a prompt's blocks, as Mooncake's are."""
    row = _foreign_object(first_line)
    return row is not None and _BLOCKS in row


def is_conversation(first_line: str) -> bool:
    """Whether the line is a JSON object with a list of `conversations`, as ShareGPT's are."""
    row = _foreign_object(first_line)
    return row is not None and _has_conversations(row)


def is_spans(first_line: str) -> bool:
    """Whether the line is a batch of OpenTelemetry's spans, or one span: attributes and a span id."""
    row = _foreign_object(first_line)
    return row is not None and not _has_conversations(row) and _has_spans(row)


def _foreign_object(text: str) -> dict[str, Any] | None:
    """The JSON object, unless it has our own format's `offset`."""
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and "offset" not in row else None


def _has_conversations(row: dict[str, Any]) -> bool:
    return isinstance(row.get("conversations"), list)


def _has_spans(row: dict[str, Any]) -> bool:
    if not _EXPORTS.isdisjoint(row) or isinstance(row.get("spans"), list):
        return True
    context = row.get("context")
    has_id = not _SPAN_IDS.isdisjoint(row) or (isinstance(context, dict) and not _SPAN_IDS.isdisjoint(context))
    return has_id and "attributes" in row


def array_refusal(source: str) -> ConfigurationError:
    """The error for a file that is one JSON array, as many tools export, of a format that is not written so."""
    return ConfigurationError(
        f"{source}, line 1: expected one JSON object a line, got a JSON array; write each of its entries on a "
        "line of its own, for example with `jq -c '.[]'`."
    )


def require_whole_object(first_line: str, source: str) -> None:
    """Raises ConfigurationError for a file of one JSON object over several lines; no format starts so."""
    if first_line.strip() == "{":
        raise ConfigurationError(
            f"{source}, line 1: expected one JSON object a line, got one over several lines; write each object on one "
            "line, for example with `jq -c .`."
        )
