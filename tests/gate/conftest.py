"""Synthetic runs of known truth: arms whose times and answers differ from the baseline's by given factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from quantgate.store.manifest import (
    ArmManifest,
    Environment,
    FidelityCertificate,
    ModelManifest,
    RunManifest,
    WorkloadManifest,
)
from quantgate.store.run_folder import LoadedRun
from quantgate.store.schemas import QUALITY, REQUESTS, STEPS


@dataclass(frozen=True)
class SyntheticArm:
    """slowdown: factor on all times. wrong: share of task items turned wrong. kl: mean KL.

    noise: log sd of a time, by request. cell_noise: the same, shared by the requests of one block.
    logprob_drop: fall of the right answer's log-probability, nats a token.
    """

    arm_id: str
    role: str = "candidate"
    slowdown: float = 1.0
    wrong: float = 0.0
    kl: float = 1e-5
    noise: float = 0.1
    cell_noise: float = 0.0
    logprob_drop: float = 0.0
    failed: int = 0
    weight_bytes: int = 200_000_000
    valid: bool = True
    missing_requests: int = 0
    changes: dict[str, Any] = field(default_factory=dict)


def _manifest_arm(arm: SyntheticArm) -> ArmManifest:
    return ArmManifest(
        **{
            "arm_id": arm.arm_id, "role": arm.role, "target": "bundled", "model": "m", "scheme": "fp16",
            "kv_dtype": "bf16", "compute_dtype": "bf16", "head_dtype": "bf16", "weight_bytes": arm.weight_bytes,
            "linear_weight_bytes": arm.weight_bytes // 2, "load_seconds": 1.0, "kernel_set": "reference",
            "kernel_paths": {"linear": "torch"},
        } | arm.changes
    )  # fmt: skip


def _certificate(arm: SyntheticArm, requests: int) -> FidelityCertificate:
    return FidelityCertificate(
        arm_id=arm.arm_id, requests_intended=requests, requests_delivered=requests, lag_ms_p50=0.1, lag_ms_p95=0.5,
        lag_ms_p99=1.0, lag_ms_max=2.0, windows=[], driver_cpu_share=None, valid=arm.valid,
        reasons=[] if arm.valid else ["99 % of the lag is 800 ms, above the limit of 50 ms"],
    )  # fmt: skip


def _request_rows(arm: SyntheticArm, count: int, base: Any, rng: np.random.Generator) -> list[dict[str, Any]]:
    rows = []
    cells = arm.slowdown * np.exp(rng.normal(0, arm.cell_noise, 4))
    for index in range(count - arm.missing_requests):
        scheduled = int(index * 1e8)
        slowdown = float(cells[index * 4 // count])
        factor = slowdown * float(np.exp(rng.normal(0, arm.noise)))
        first = scheduled + int(base["ttft"][index] * factor)
        tokens = 20
        last = first + int(base["tpot"][index] * slowdown * np.exp(rng.normal(0, arm.noise)) * (tokens - 1))
        failed = index < arm.failed
        rows.append(
            {
                "arm_id": arm.arm_id, "pass_index": 0, "block_index": index * 4 // count, "request_id": f"r{index}",
                "slo_class": "batch" if index % 4 == 3 else "interactive", "session_id": None, "turn": 1, "tags": [],
                "prompt_tokens": 100, "requested_output_tokens": tokens, "output_tokens": 0 if failed else tokens,
                "status": "failed" if failed else "finished", "finish_reason": None if failed else "length",
                "abort_cause": None, "error": "boom" if failed else None, "scheduled_ns": scheduled,
                "sent_ns": scheduled, "first_token_ns": None if failed else first,
                "last_token_ns": None if failed else last, "ended_ns": last, "token_times_ns": [],
                "arrived_ns": scheduled, "admitted_ns": scheduled, "engine_first_token_ns": first,
                "engine_finished_ns": last, "preemptions": 0, "recomputed_tokens": 0, "cached_prompt_tokens": 0,
                "kv_peak_blocks": 1, "kv_block_seconds": 0.0, "output_token_ids": [], "prompt_text": None,
                "counted_by": "engine", "chunks": 0, "first_answer_ns": None if failed else first, "attempts": 1,
                "output_text": None,
            }
        )  # fmt: skip
    return rows


def _quality_rows(arm: SyntheticArm, items: int, sequences: int, base: Any, rng: np.random.Generator) -> list[Any]:
    rows = []
    for index in range(items):
        right = bool(base["right"][index]) and not rng.random() < arm.wrong
        rows.append((arm.arm_id, "task", f"t{index % 5}", f"i{index}", f"i{index}", "gold_preferred", right, 0.25))
        logprob = base["logprob"][index] - arm.logprob_drop + rng.normal(0, 0.02)
        rows.append((arm.arm_id, "task", f"t{index % 5}", f"i{index}", f"i{index}", "gold_logprob", logprob, None))
    for index in range(sequences if arm.role != "baseline" else 0):
        kl = arm.kl * float(np.exp(rng.normal(0, 0.5)))
        cells = {"kl": kl, "top1_agreement": np.exp(-5 * kl), "first_token_agreement": float(kl < 0.5)}
        rows += [(arm.arm_id, "distribution", "replay", f"r{index}", f"r{index}", k, v, None) for k, v in cells.items()]
    names = ("arm_id", "tier", "task", "item_id", "cluster_id", "metric", "value", "floor")
    return [dict(zip(names, row, strict=True)) | {"value": float(row[6])} for row in rows]


def build_run(
    *arms: SyntheticArm, seed: int = 0, requests: int = 96, items: int = 100, sequences: int = 64, **changes: Any
) -> LoadedRun:
    rng = np.random.default_rng(seed)
    base = {
        "ttft": rng.lognormal(np.log(3e8), 0.5, requests),
        "tpot": rng.lognormal(np.log(5e7), 0.2, requests),
        "logprob": rng.normal(-1.5, 0.5, items),
        "right": rng.random(items) < 0.7,
    }
    request_rows = [row for arm in arms for row in _request_rows(arm, requests, base, rng)]
    quality_rows = [row for arm in arms for row in _quality_rows(arm, items, sequences, base, rng)]
    empty_text = {"output_text": None, "expected_text": None, "detail": None}
    manifest = RunManifest(
        **{
            "run_id": "run", "state": "complete", "phase": "done", "created_utc": "2026-01-01T00:00:00Z",
            "command": ["quantgate", "run"], "seed": seed,
            "model": ModelManifest(name="m", weights_sha256="w", tokenizer_sha256="t"),
            "arms": [_manifest_arm(arm) for arm in arms],
            "fidelity": [_certificate(arm, requests) for arm in arms],
            "workload": WorkloadManifest(
                source="s", source_sha256="s", plan_sha256="p", requests=requests, prompt_tokens=1, output_tokens=1,
                span_seconds=1.0, blocks=4, seed=0, output_lengths="forced", history="recorded", transforms=[],
            ),
            "environment": Environment(
                python="3", platform="p", cpu="c", cores=2, threads=2, memory_bytes=1, isa=[], device="cpu", versions={}
            ),
        } | changes
    )  # fmt: skip
    return LoadedRun(
        manifest,
        pa.Table.from_pylist(request_rows, schema=REQUESTS),
        pa.Table.from_pylist([], schema=STEPS),
        pa.Table.from_pylist([row | empty_text for row in quality_rows], schema=QUALITY),
    )


@pytest.fixture
def arm() -> type[SyntheticArm]:
    return SyntheticArm


@pytest.fixture
def run_of() -> Callable[..., LoadedRun]:
    """`run_of(arm(...), arm(...), seed=..., requests=...)`."""
    return build_run
