"""Tells the two JSONL formats apart by their first line; each line belongs to exactly one of them."""

from __future__ import annotations

import json

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
