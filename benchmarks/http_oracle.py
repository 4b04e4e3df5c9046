"""Figures over real sockets against the same requests on a virtual clock, where every figure is exact.

That the virtual figures are what the scripts imply, hand-computed tests prove (`tests/targets/test_http_oracle.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.oracle_scripts import KINDS, SERVICE_MS, script_of

from quantgate.metrics.registry import POOLED_METRICS, REQUEST_METRICS
from quantgate.metrics.stalls import stalls
from quantgate.replay.driver import Driver
from quantgate.replay.interleave import Cell
from quantgate.replay.observation import RequestObservation
from quantgate.replay.precise_timers import precise_loop
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
WARM_UP = 4
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
    requests: list[PlannedRequest],
    clock: Clock,
    url: str,
    *,
    transport: Transport | None = None,
    warm_up: int = 0,
    lead_ns: int = 0,
) -> pa.Table:
    """`warm_up` requests go first and are not measured, as in every run of quantgate."""
    target = OpenAITarget(EndpointSettings(url=url), arm_id="http", role="baseline", clock=clock, transport=transport)
    seen: list[RequestObservation] = []
    await target.start()
    try:
        for index in range(warm_up):
            await Driver(target, clock, lambda _: None).replay([request(f"queued-warm-{index}", 0, 1)], clock.now_ns())
        await Driver(target, clock, seen.append).replay(requests, clock.now_ns() + lead_ns)
    finally:
        await target.stop()
    origin_ns = min(one.scheduled_ns for one in seen)
    return request_table(Cell(0, 0, "http"), seen, origin_ns, lambda _: "")


def measured(requests: list[PlannedRequest], url: str) -> pa.Table:
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        return runner.run(replay(requests, MonotonicClock(), url, warm_up=WARM_UP, lead_ns=LEAD_NS))


def implied(requests: list[PlannedRequest], slots: int) -> pa.Table:
    return run_in_virtual_time(
        lambda clock: replay(
            requests,
            clock,
            "http://scripted",
            transport=ScriptedTransport(
                lambda sent: models("scripted") if sent.body is None else script_of(sent.body["prompt"]),
                clock,
                slots=slots,
            ),
        )
    )


def figures(table: pa.Table) -> dict[str, np.ndarray]:
    """One value a request, and every gap between tokens; ms."""
    return {name: REQUEST_METRICS[name](table) for name in TIMES} | {"itl_ms": POOLED_METRICS["itl_ms"](table).values}


def largest_difference(measured: np.ndarray, exact: np.ndarray) -> float:
    """ms; infinite where one side lacks a value that the other has."""
    if measured.shape != exact.shape or not np.array_equal(np.isnan(measured), np.isnan(exact)):
        return float("inf")
    return round(float(np.nanmax(np.abs(measured - exact), initial=0.0)), 3)


def equal_counts(real: pa.Table, exact: pa.Table) -> bool:
    """Stalls, tokens per request, statuses and kinds of error are the same, not only near."""
    same = [real.column(name).to_pylist() == exact.column(name).to_pylist() for name in ("status", "error_kind")]
    counts = [real.column(name).to_pylist() == exact.column(name).to_pylist() for name in ("output_tokens", "chunks")]
    return all(same) and all(counts) and np.array_equal(stalls(real, LIMITS), stalls(exact, LIMITS), equal_nan=True)


def compare_with_oracle(
    serving: Callable[[int], AbstractContextManager[str]], repeats: int, tolerance_ms: float
) -> dict[str, Any]:
    """`serving(slots)` is the URL of a server with so many slots for as long as the block lasts."""
    scenarios = {
        "every kind of answer": (spread_requests(per_kind=20), 1 << 12),
        "one slot, five times its load": (queued_requests(), 1),
    }
    compared: dict[str, Any] = {"tolerance_ms": tolerance_ms, "within_tolerance": True}
    for name, (requests, slots) in scenarios.items():
        exact = implied(requests, slots)
        with serving(slots) as url:
            runs = [measured(requests, url) for _ in range(repeats)]
        single = {metric: [figures(run)[metric] for run in runs] for metric in figures(exact)}
        wanted = figures(exact)
        # The median of each figure over the repeats: a machine that pauses once is no property of the client.
        typical = {metric: largest_difference(_median(single[metric]), wanted[metric]) for metric in wanted}
        worst = {metric: max(largest_difference(run, wanted[metric]) for run in single[metric]) for metric in wanted}
        counts_equal = all(equal_counts(run, exact) for run in runs)
        compared[name] = {
            "requests": len(requests),
            "repeats": repeats,
            "largest_difference_ms": typical,
            "largest_difference_in_any_repeat_ms": worst,
            "counts_equal": counts_equal,
            "e2e_ms_p99": {
                "implied": float(np.nanpercentile(wanted["e2e_ms"], 99)),
                "measured": [round(float(np.nanpercentile(run, 99)), 3) for run in single["e2e_ms"]],
            },
            "client_overhead_ms_max": [
                round(float(np.nanmax(REQUEST_METRICS["client_overhead_ms"](run))), 3) for run in runs
            ],
        }
        compared["within_tolerance"] &= counts_equal and max(typical.values()) <= tolerance_ms
    return compared


def _median(values: list[np.ndarray]) -> np.ndarray:
    return np.median(np.stack(values), axis=0) if len({len(one) for one in values}) == 1 else np.array([])
