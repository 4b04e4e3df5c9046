"""Builds small request and step tables for tests: sensible defaults, every column settable."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from quantgate.store.schemas import REQUESTS, STEPS

MS = 1_000_000


def request_row(request_id: str = "r1", **columns: Any) -> dict[str, Any]:
    """A finished request: scheduled at 0, sent at 1 ms, tokens at 11, 21 and 41 ms."""
    row: dict[str, Any] = {
        "arm_id": "fp16", "pass_index": 0, "block_index": 0, "request_id": request_id, "slo_class": "interactive",
        "session_id": None, "turn": 1, "tags": [], "prompt_tokens": 4, "requested_output_tokens": 3,
        "output_tokens": 3, "status": "finished", "finish_reason": "length", "scheduled_ns": 0, "sent_ns": 1 * MS,
        "first_token_ns": 11 * MS, "last_token_ns": 41 * MS, "ended_ns": 41 * MS,
        "token_times_ns": [11 * MS, 21 * MS, 41 * MS], "arrived_ns": 2 * MS, "admitted_ns": 4 * MS,
        "engine_first_token_ns": 10 * MS, "engine_finished_ns": 40 * MS, "preemptions": 0, "recomputed_tokens": 0,
        "cached_prompt_tokens": 0, "kv_peak_blocks": 1, "kv_block_seconds": 0.04, "output_token_ids": [7, 8, 9],
        "counted_by": "engine", "chunks": 3, "first_answer_ns": 11 * MS, "attempts": 1,
    }  # fmt: skip
    assert not set(columns) - set(REQUESTS.names)
    return row | columns


def unanswered_row(request_id: str, status: str, **columns: Any) -> dict[str, Any]:
    """A request that ended without a token."""
    nothing = {
        "output_tokens": 0, "finish_reason": None, "first_token_ns": None, "last_token_ns": None, "token_times_ns": [],
        "admitted_ns": None, "engine_first_token_ns": None, "engine_finished_ns": None, "output_token_ids": [],
        "first_answer_ns": None, "chunks": 0,
    }  # fmt: skip
    return request_row(request_id, status=status, **nothing | columns)


def request_table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=REQUESTS)


def step_table(*steps: dict[str, Any]) -> pa.Table:
    """Steps back to back; each names only what matters to the test."""
    rows = []
    for index, step in enumerate(steps):
        row = dict.fromkeys(STEPS.names, 0) | {"arm_id": "fp16", "step_index": index, "pool": None} | step
        assert not set(step) - set(STEPS.names)
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=STEPS)
