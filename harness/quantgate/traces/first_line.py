"""What the first line of a file tells: which of the two JSONL formats it is, or that it is JSON over several lines."""

from __future__ import annotations

import json

from quantgate_engine.errors import ConfigurationError

_LOG_KEYS = frozenset(
    {
        "timestamp", "time", "ts", "@timestamp", "created", "created_at", "start_time", "startTime",
        "request", "request_body", "requestBody", "body", "response", "response_body", "usage", "choices",
        "model", "completion_tokens",
    }
)  # fmt: skip
_CONVERSATION = frozenset({"messages", "prompt"})


def is_request_log(first_line: str) -> bool:
    """Whether the line is a JSON object with a key that request logs have, and without our own format's `offset`.

    So is a conversation without any time and without our own `id`: a log that keeps its times elsewhere, if anything.
    """
    try:
        row = json.loads(first_line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(row, dict) or "offset" in row:
        return False
    return not _LOG_KEYS.isdisjoint(row) or ("id" not in row and not _CONVERSATION.isdisjoint(row))


def require_one_row_a_line(first_line: str, source: str) -> None:
    """Raises ConfigurationError for a file that is one JSON document, as many tools export; no format starts so."""
    start = first_line.strip()
    if start.startswith("["):
        raise ConfigurationError(
            f"{source}, line 1: expected one JSON object a line, got a JSON array; write each of its entries on a "
            "line of its own, for example with `jq -c '.[]'`."
        )
    if start == "{":
        raise ConfigurationError(
            f"{source}, line 1: expected one JSON object a line, got one over several lines; write each object on one "
            "line, for example with `jq -c .`."
        )
