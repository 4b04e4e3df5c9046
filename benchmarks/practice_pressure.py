"""The table of KV pressure: a pool for a quarter of the demand, for every way to let in and to give way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import get_args

from benchmarks.practice_columns import GAP, MEAN_ACTIVE, PEAK_ACTIVE, PREEMPTIONS, RECOMPUTE_TAX, THROUGHPUT, ttft
from benchmarks.practice_figures import ENGINE
from benchmarks.practice_setups import (
    BLOCK_TOKENS,
    PATIENT_CLASSES,
    Column,
    PracticeTable,
    Setup,
    engine_of,
    one_engine,
)
from benchmarks.practice_traffic import CONTEXT_TOKENS, Traffic, draw_plan, largest_burst

from quantgate.workload.plan import PlannedRequest
from quantgate_engine.scheduler.admission.settings import AdmissionSettings, EstimatorName
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionModeName, PreemptionSettings, VictimPolicyName

TRAFFIC = Traffic(requests=120, requests_per_s=5.0, burst_requests=20, answer_tokens=40, longest_answer=96)
"""Larger bursts and longer answers than the practices have: what is let in grows, and memory is what it waits for."""

DEMAND_OVER_POOL = 4

# `guaranteed` lets nobody in who might have to give way.
_PREEMPTING: tuple[EstimatorName, ...] = ("past-future", "optimistic")


def kv_pressure(traffic: Traffic) -> PracticeTable:
    burst = largest_burst(draw_plan(traffic))
    demand = sum(map(_blocks_of, burst))
    pool = max(demand // DEMAND_OVER_POOL, CONTEXT_TOKENS // BLOCK_TOKENS)

    def row(blocks: int, estimator: EstimatorName, preemption: PreemptionSettings) -> Setup:
        """As many may be active as the largest burst has, so that memory is the only limit."""
        engine = replace(
            engine_of(CONTEXT_TOKENS, active=len(burst), pool_tokens=blocks * BLOCK_TOKENS),
            admission=AdmissionSettings(estimator=estimator),
            batching=BatchingSettings(slo_classes=PATIENT_CLASSES),
            preemption=preemption,
        )
        return one_engine(traffic, engine)

    return PracticeTable(
        f"A pool of {pool} blocks where the largest burst's requests need {demand}: who gives way, and how",
        {
            "a pool for all, guaranteed": row(demand, "guaranteed", PreemptionSettings()),
            "guaranteed": row(pool, "guaranteed", PreemptionSettings()),
        }
        | {
            f"{estimator}, {mode}, {victim}": row(
                pool, estimator, PreemptionSettings(mode=mode, victim=victim, host_blocks=demand)
            )
            for estimator in _PREEMPTING
            for mode in get_args(PreemptionModeName)
            for victim in get_args(VictimPolicyName)
        },
        (
            PREEMPTIONS,
            RECOMPUTE_TAX,
            Column("oom_count", ENGINE, "oom_count"),
            MEAN_ACTIVE,
            PEAK_ACTIVE,
            THROUGHPUT,
            *ttft("all", 50, 99),
            GAP,
        ),
    )


def _blocks_of(request: PlannedRequest) -> int:
    """KV blocks of the whole sequence, whose last token is never stored."""
    return -(-(request.prompt_tokens + request.output_tokens - 1) // BLOCK_TOKENS)


TABLES: Mapping[str, Callable[[Traffic], PracticeTable]] = {"kv-pressure": kv_pressure}
