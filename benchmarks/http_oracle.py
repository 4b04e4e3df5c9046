"""Figures over real sockets against the same requests on a virtual clock, where every figure is exact.

That the virtual figures are what the scripts imply, hand-computed tests prove (`tests/targets/test_http_oracle.py`).
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pyarrow as pa
from oracle_scripts import KINDS, SERVICE_MS, script_of

from quantgate.metrics.registry import POOLED_METRICS, REQUEST_METRICS
from quantgate.metrics.stalls import stalls
from quantgate.replay.driver import Driver
from quantgate.replay.interleave import Cell
from quantgate.replay.observation import RequestObservation
from quantgate.replay.rows import request_table
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.openai.scripted_transport import ScriptedTransport
from quantgate.targets.openai.settings import EndpointSettings
from quantgate.targets.openai.target import OpenAITarget
from quantgate.targets.openai.transport import Transport
from quantgate.targets.openai.wire_script import models
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import Clock, MonotonicClock

TIMES = ("ttft_ms", "ttft_from_sent_ms", "time_to_first_answer_ms", "tpot_ms", "e2e_ms", "longest_gap_ms")
LIMITS = {"interactive": {"longest_gap_ms": 150.0, "ttft_ms": 70.0}}
LEAD_NS = 100_000_000
QUEUED = 200


def request(prompt: str, at_ms: float, output_tokens: int) -> PlannedRequest:
    return PlannedRequest(prompt, round(at_ms * 1e6), (), output_tokens, prompt_text=prompt)


def spread_requests(per_kind: int) -> list[PlannedRequest]:
    """Every kind of script in turn, 17 ms apart, so that a dozen answers are under way at any time."""
    prompts = [f"{kind}-{index}" for index in range(per_kind) for kind in KINDS]
    return [request(prompt, 17.0 * position, 64) for position, prompt in enumerate(prompts)]


def queued_requests() -> list[PlannedRequest]:
    """Five times what one slot can serve, as 10 a second with 500 ms of service are, in a tenth of the time."""
    return [request(f"queued-{index}", index * SERVICE_MS / 5, 1) for index in range(QUEUED)]


async def replay(
    requests: list[PlannedRequest], clock: Clock, url: str, transport: Transport | None, lead_ns: int
) -> pa.Table:
    target = OpenAITarget(EndpointSettings(url=url), arm_id="http", role="baseline", clock=clock, transport=transport)
    seen: list[RequestObservation] = []
    await target.start()
    try:
        await Driver(target, clock, seen.append).replay(requests, clock.now_ns() + lead_ns)
    finally:
        await target.stop()
    origin_ns = min(one.scheduled_ns for one in seen)
    return request_table(Cell(0, 0, "http"), seen, origin_ns, lambda _: "")


def measured(requests: list[PlannedRequest], url: str) -> pa.Table:
    return asyncio.run(replay(requests, MonotonicClock(), url, None, LEAD_NS))


def implied(requests: list[PlannedRequest], slots: int) -> pa.Table:
    return run_in_virtual_time(
        lambda clock: replay(
            requests,
            clock,
            "http://scripted",
            ScriptedTransport(
                lambda sent: models("scripted") if sent.body is None else script_of(sent.body["prompt"]),
                clock,
                slots=slots,
            ),
            0,
        )
    )


def differences(real: pa.Table, exact: pa.Table) -> dict[str, float]:
    """Largest absolute difference of each figure over the requests, ms; infinite where one side has none."""
    found = {name: _largest(REQUEST_METRICS[name](real), REQUEST_METRICS[name](exact)) for name in TIMES}
    gaps = [POOLED_METRICS["itl_ms"](table).values for table in (real, exact)]
    found["itl_ms"] = _largest(*gaps) if len(gaps[0]) == len(gaps[1]) else float("inf")
    return found


def _largest(real: np.ndarray, exact: np.ndarray) -> float:
    if not np.array_equal(np.isnan(real), np.isnan(exact)):
        return float("inf")
    return float(np.nanmax(np.abs(real - exact), initial=0.0))


def equal_counts(real: pa.Table, exact: pa.Table) -> bool:
    """Stalls, tokens per request, statuses and kinds of error are the same, not only near."""
    same = [real.column(name).to_pylist() == exact.column(name).to_pylist() for name in ("status", "error_kind")]
    counts = [real.column(name).to_pylist() == exact.column(name).to_pylist() for name in ("output_tokens", "chunks")]
    return all(same) and all(counts) and np.array_equal(stalls(real, LIMITS), stalls(exact, LIMITS), equal_nan=True)


def compare_with_oracle(url: str, one_slot_url: str, repeats: int, tolerance_ms: float) -> dict[str, Any]:
    scenarios = {
        "every kind of answer": (spread_requests(per_kind=20), url, 1 << 20),
        "one slot, five times its load": (queued_requests(), one_slot_url, 1),
    }
    compared: dict[str, Any] = {"tolerance_ms": tolerance_ms, "within_tolerance": True}
    for name, (requests, server, slots) in scenarios.items():
        exact = implied(requests, slots)
        runs = [measured(requests, server) for _ in range(repeats)]
        found = [differences(real, exact) for real in runs]
        worst = {metric: round(max(run[metric] for run in found), 3) for metric in found[0]}
        counts_equal = all(equal_counts(real, exact) for real in runs)
        compared[name] = {
            "requests": len(requests),
            "repeats": repeats,
            "largest_difference_ms": worst,
            "counts_equal": counts_equal,
            "e2e_ms_p99": {
                "implied": float(np.nanpercentile(REQUEST_METRICS["e2e_ms"](exact), 99)),
                "measured": [float(np.nanpercentile(REQUEST_METRICS["e2e_ms"](real), 99)) for real in runs],
            },
            "client_overhead_ms_max": [float(np.nanmax(REQUEST_METRICS["client_overhead_ms"](real))) for real in runs],
        }
        compared["within_tolerance"] &= counts_equal and max(worst.values()) <= tolerance_ms
    return compared
