"""Tells the two JSONL formats apart by their first line; each line belongs to exactly one of them."""

from __future__ import annotations

import json

_LOG_KEYS = frozenset(
    {
        "timestamp", "time", "ts", "@timestamp", "created", "created_at", "start_time", "startTime",
        "request", "request_body", "requestBody", "body", "response", "response_body", "usage", "choices",
    }
)  # fmt: skip


def is_request_log(first_line: str) -> bool:
    """Whether the line is a JSON object with a key that request logs have, and without our own format's `offset`."""
    try:
        row = json.loads(first_line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and "offset" not in row and not _LOG_KEYS.isdisjoint(row)
