"""Rows of the request and step tables from what the driver saw and the engine reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from quantgate.replay.interleave import Cell
from quantgate.replay.observation import RequestObservation
from quantgate.store.schemas import REQUESTS, STEPS
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.step_record import StepRecord

DecodeText = Callable[[list[int]], str]


def request_table(
    cell: Cell, observations: Iterable[RequestObservation], origin_ns: int, decode_text: DecodeText
) -> pa.Table:
    """Rows in order of schedule; times become nanoseconds from `origin_ns`, the run's start on the clock."""
    in_order = sorted(observations, key=lambda seen: (seen.scheduled_ns, seen.request.request_id))
    rows = [_request_row(cell, seen, origin_ns, decode_text) for seen in in_order]
    return pa.Table.from_pylist(rows, schema=REQUESTS)


def _request_row(cell: Cell, seen: RequestObservation, origin_ns: int, decode_text: DecodeText) -> dict[str, Any]:
    request, end, engine, transfer = seen.request, seen.end, seen.end.engine, seen.transfer
    token_times_ns = [time_ns - origin_ns for time_ns in seen.token_times_ns]

    def from_origin(time_ns: int | None) -> int | None:
        return None if time_ns is None else time_ns - origin_ns

    return {
        **asdict(cell),
        "request_id": request.request_id,
        "slo_class": request.slo_class,
        "session_id": request.session_id,
        "turn": request.turn,
        "tags": list(request.tags),
        "prompt_tokens": _prompt_tokens(seen),
        "requested_output_tokens": request.output_tokens,
        "output_tokens": len(seen.token_times_ns),
        "status": end.status,
        "finish_reason": end.finish_reason,
        "abort_cause": end.abort_cause,
        "error": end.error,
        "scheduled_ns": seen.scheduled_ns - origin_ns,
        "sent_ns": seen.sent_ns - origin_ns,
        "first_token_ns": token_times_ns[0] if token_times_ns else None,
        "last_token_ns": token_times_ns[-1] if token_times_ns else None,
        "ended_ns": seen.ended_ns - origin_ns,
        "token_times_ns": token_times_ns,
        "counted_by": seen.counted_by,
        "chunks": len(seen.pieces) or len(set(token_times_ns)),
        "first_answer_ns": from_origin(seen.first_answer_ns),
        "attempts": transfer.attempts if transfer else 1,
        "http_status": transfer.http_status if transfer else None,
        "error_kind": transfer.error_kind if transfer else None,
        # A client that reads slowly by plan hands everything on late.
        "client_overhead_ns": transfer.overhead_ns if transfer and request.read_tokens_per_s is None else None,
        "arrived_ns": from_origin(engine.arrived_ns) if engine else None,
        "admitted_ns": from_origin(engine.admitted_ns) if engine else None,
        "engine_first_token_ns": from_origin(engine.first_token_ns) if engine else None,
        "engine_finished_ns": from_origin(engine.finished_ns) if engine else None,
        "preemptions": end.preemptions,
        "recomputed_tokens": end.recomputed_tokens,
        "cached_prompt_tokens": end.cached_prompt_tokens,
        "kv_peak_blocks": end.kv_peak_blocks,
        "kv_block_seconds": end.kv_block_seconds,
        "output_token_ids": seen.token_ids,
        "prompt_text": _prompt_text(request, decode_text),
        "output_text": seen.text(reasoning=False) if seen.pieces else decode_text(seen.token_ids),
        "reasoning_text": seen.text(reasoning=True) or None,
        "degraded": end.degraded,
        "cached_told": _cached_told(seen),
        "read_tokens_per_s": request.read_tokens_per_s,
    }


def _cached_told(seen: RequestObservation) -> bool:
    """Whether `cached_prompt_tokens` is the target's word: of a request that the client gave up, it has none."""
    if seen.transfer is not None:
        return seen.end.status == "finished" and seen.transfer.cached_prompt_tokens is not None
    return seen.end.engine is not None and seen.end.engine.admitted_ns is not None


def _prompt_tokens(seen: RequestObservation) -> int:
    """Of what was sent, where its ids are known; else as the server counted it, else as the trace did (0: nobody)."""
    if seen.request.prompt_token_ids or seen.transfer is None:
        return seen.request.prompt_tokens
    return seen.transfer.prompt_tokens or seen.request.prompt_tokens


def _prompt_text(request: PlannedRequest, decode_text: DecodeText) -> str:
    if request.prompt_token_ids:
        return decode_text(list(request.prompt_token_ids))
    if request.messages is not None:
        return "\n".join(f"{message.role}: {message.content}" for message in request.messages)
    return request.prompt_text or ""


def step_table(cell: Cell, steps: Iterable[StepRecord], origin_ns: int) -> pa.Table:
    """One row per engine step of the cell; `started_ns` becomes nanoseconds from `origin_ns`."""
    rows = [asdict(cell) | step._asdict() | {"started_ns": step.started_ns - origin_ns} for step in steps]
    return pa.Table.from_pylist(rows, schema=STEPS)
