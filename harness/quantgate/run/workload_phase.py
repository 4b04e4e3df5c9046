"""From the suite's trace to the plan that every arm replays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from quantgate.arms.tokenizer import RunTokenizer
from quantgate.replay.closed_loop import ClosedLoop, load_words
from quantgate.replay.history import History, LiveHistory
from quantgate.run.arms import OpenedArms
from quantgate.store.manifest import WorkloadManifest
from quantgate.suite import WorkloadConfig
from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.openai_log.columns import load_column_map
from quantgate.traces.reader import import_trace
from quantgate.traces.record import TraceRecord
from quantgate.traces.source_text import trace_sha256
from quantgate.traces.transform_record import TransformRecord
from quantgate.workload.blocks import assign_blocks, settled_blocks
from quantgate.workload.build_plan import apply_transforms, build_plan, check_context
from quantgate.workload.plan import ReplayPlan
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate.workload.transforms import TransformContext
from quantgate.workload.transforms.sessions import unit_key
from quantgate_engine.counted import counted
from quantgate_engine.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Traffic:
    """A trace, read and transformed, before any arm is asked about it. steps: what was done to its rows, in order."""

    records: tuple[TraceRecord, ...]
    steps: tuple[TransformRecord, ...]
    source: str
    source_sha256: str

    @property
    def slo_classes(self) -> set[str]:
        return {record.slo_class for record in self.records}


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


def read_traffic(
    trace: Path,
    workload: WorkloadConfig,
    tokenizer: RunTokenizer | None,
    seed: int,
    max_context_tokens: int | None = None,
    columns: Path | None = None,
) -> Traffic:
    """Reads the trace, by the column map where there is one, and transforms it.

    max_context_tokens: the shortest context among the arms, as far as it is known already. Raises ConfigurationError
    with file, line and field, for transforms that leave nothing, for more blocks than there are units, for lengths
    without texts where there is no tokenizer, and for requests that do not fit the context.
    """
    imported = import_trace(
        trace,
        ImportSettings(
            format_name=workload.format,
            columns=None if columns is None else load_column_map(columns),
            redact=None if workload.redact else False,
            strict=workload.strict,
            other_parts=workload.other_parts,
            block_tokens=workload.block_tokens,
            count_tokens=None
            if tokenizer is None
            else lambda text: len(tokenizer.encode(text, add_special_tokens=False)),
        ),
    )
    encoder = PromptEncoder(tokenizer, seed)
    records, history = apply_transforms(imported.records, workload.transforms, TransformContext(encoder, seed))
    if max_context_tokens is not None:
        check_context(records, encoder, max_context_tokens, trace.name)
    _refuse_what_cannot_be_planned(records, workload, encoder)
    return Traffic(tuple(records), (*imported.steps, *history), trace.name, trace_sha256(trace))


def _refuse_what_cannot_be_planned(
    records: Sequence[TraceRecord], workload: WorkloadConfig, encoder: PromptEncoder
) -> None:
    """Raises what `plan_workload` would raise once the arms are up, minutes later."""
    blocks = assign_blocks(records, settled_blocks(workload.blocks, records))
    if workload.clients is not None:
        _refuse_idle_clients(workload.clients, records, blocks)
    if not encoder.has_tokenizer:
        for record in records:
            encoder.encode(record)


def _refuse_idle_clients(clients: int, records: Sequence[TraceRecord], blocks: Sequence[int]) -> None:
    """A load of N clients needs N things to send at a time."""
    units = {(block, unit_key(record)) for record, block in zip(records, blocks, strict=True)}
    fewest = min(Counter(block for block, _ in units).values())
    if fewest < clients:
        raise ConfigurationError(
            f"The closed loop was to have {counted(clients, 'client')}, but a block of the workload holds "
            f"only {fewest} (sessions and single requests): lower `clients` in the suite's workload (--clients) or "
            "`blocks` (--blocks)."
        )


def plan_workload(
    traffic: Traffic,
    workload: WorkloadConfig,
    tokenizer: RunTokenizer | None,
    seed: int,
    max_context_tokens: int | None,
) -> ReplayPlan:
    """What every arm replays. Raises ConfigurationError for requests that do not fit the arms' context."""
    return build_plan(
        traffic.records,
        tokenizer,
        source=traffic.source,
        source_sha256=traffic.source_sha256,
        import_steps=traffic.steps,
        seed=seed,
        blocks=settled_blocks(workload.blocks, traffic.records),
        output_lengths=_settled(workload),
        max_context_tokens=max_context_tokens,
    )


def history_of(workload: WorkloadConfig, arms: OpenedArms, seed: int) -> History | None:
    """What makes the later turns of sessions; None sends them as planned."""
    if workload.history == "recorded":
        return None
    encoder = PromptEncoder(arms.tokenizer, seed)
    return LiveHistory(encoder.encode_messages if encoder.has_tokenizer else None)


def closed_loop_of(workload: WorkloadConfig) -> ClosedLoop | None:
    """The clients that send the traffic; None where its schedule does."""
    return None if workload.clients is None else ClosedLoop(workload.clients, round(workload.client_think_s * 1e9))


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
        clients=workload.clients,
        load=load_words(closed_loop_of(workload)),
        transforms=[asdict(transform) for transform in plan.transforms],
    )
