"""From the suite's trace to the plan that every arm replays."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from quantgate.store.manifest import WorkloadManifest
from quantgate.suite import WorkloadConfig
from quantgate.traces.reader import read_trace
from quantgate.traces.source_text import trace_sha256
from quantgate.workload.build_plan import build_plan
from quantgate.workload.plan import ReplayPlan
from quantgate.workload.tokenizer import Tokenizer


def plan_workload(
    trace: Path, workload: WorkloadConfig, tokenizer: Tokenizer, seed: int, max_context_tokens: int | None
) -> ReplayPlan:
    """Reads the trace and plans it. Raises ConfigurationError with file, line and field."""
    return build_plan(
        read_trace(trace, workload.format),
        tokenizer,
        source=trace.name,
        source_sha256=trace_sha256(trace),
        transforms=workload.transforms,
        seed=seed,
        blocks=workload.blocks,
        output_lengths=workload.output_lengths,
        max_context_tokens=max_context_tokens,
    )


def workload_manifest(plan: ReplayPlan, workload: WorkloadConfig) -> WorkloadManifest:
    return WorkloadManifest(
        source=plan.source,
        source_sha256=plan.source_sha256,
        plan_sha256=plan.sha256(),
        requests=len(plan.requests),
        prompt_tokens=plan.prompt_tokens,
        output_tokens=plan.output_tokens,
        span_seconds=plan.span_ns / 1e9,
        blocks=plan.num_blocks,
        seed=plan.seed,
        output_lengths=workload.output_lengths,
        history="recorded",
        transforms=[asdict(transform) for transform in plan.transforms],
    )
