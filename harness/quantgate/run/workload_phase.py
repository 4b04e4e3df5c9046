"""From the suite's trace to the plan that every arm replays."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Literal

from quantgate.arms.tokenizer import RunTokenizer
from quantgate.replay.history import History, LiveHistory
from quantgate.run.arms import OpenedArms
from quantgate.store.manifest import WorkloadManifest
from quantgate.suite import WorkloadConfig
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.openai_log.columns import load_column_map
from quantgate.traces.reader import import_trace
from quantgate.traces.source_text import trace_sha256
from quantgate.workload.build_plan import build_plan
from quantgate.workload.plan import ReplayPlan
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate_engine.errors import ConfigurationError


def settled_lengths(workload: WorkloadConfig, arms: OpenedArms) -> WorkloadConfig:
    """The workload with `output_lengths` decided. Raises ConfigurationError where an arm cannot be forced to one."""
    if workload.output_lengths == "auto":
        return workload.model_copy(update={"output_lengths": "forced" if arms.can_force_lengths else "natural"})
    if workload.output_lengths == "forced" and arms.refusing_force is not None:
        raise ConfigurationError(
            f"The server of arm {arms.refusing_force} does not honour ignore_eos, so output lengths cannot be forced "
            "on it; set output_lengths to natural or auto (--output-lengths natural)."
        )
    return workload


def plan_workload(
    trace: Path,
    workload: WorkloadConfig,
    tokenizer: RunTokenizer | None,
    seed: int,
    max_context_tokens: int | None,
    columns: Path | None = None,
) -> ReplayPlan:
    """Reads the trace, by the column map where there is one, and plans it.

    Raises ConfigurationError with file, line and field.
    """
    imported = import_trace(
        trace,
        ImportSettings(
            format_name=workload.format,
            columns=None if columns is None else load_column_map(columns),
            redact=None if workload.redact else False,
            strict=workload.strict,
            other_parts=workload.other_parts,
            count_tokens=None
            if tokenizer is None
            else lambda text: len(tokenizer.encode(text, add_special_tokens=False)),
        ),
    )
    return build_plan(
        imported.records,
        tokenizer,
        source=trace.name,
        source_sha256=trace_sha256(trace),
        transforms=workload.transforms,
        import_steps=imported.steps,
        seed=seed,
        blocks=workload.blocks,
        output_lengths=_settled(workload),
        max_context_tokens=max_context_tokens,
    )


def history_of(workload: WorkloadConfig, arms: OpenedArms, seed: int) -> History | None:
    """What makes the later turns of sessions; None sends them as planned."""
    if workload.history == "recorded":
        return None
    encoder = PromptEncoder(arms.tokenizer, seed)
    return LiveHistory(encoder.encode_messages if encoder.has_tokenizer else None)


def _settled(workload: WorkloadConfig) -> Literal["forced", "natural"]:
    if workload.output_lengths == "auto":
        raise ValueError("output_lengths is auto; settled_lengths decides it before anything is planned")
    return workload.output_lengths


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
        output_lengths=_settled(workload),
        history=workload.history,
        transforms=[asdict(transform) for transform in plan.transforms],
    )
