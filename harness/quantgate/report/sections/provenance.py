"""What was run, on what: model and its history, kernel paths, machine, versions, hashes, and the command."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

from quantgate.replay.degraded import degraded_requests
from quantgate.report.figures import Table
from quantgate.report.numbers import NOTHING, count, seconds, size
from quantgate.report.run_view import RunView
from quantgate_engine.model_info import REPRODUCES_AT_LOAD


@dataclass(frozen=True)
class ProvenanceSection:
    model: Table
    workload: Table | None
    kernels: Table
    unlike_kernels: list[str]
    environment: Table
    versions: Table
    command: str
    policy: str | None
    suite: str | None


def previous_quantization(view: RunView) -> str | None:
    """How the weights were quantized before they came here, in words; None where nothing is known of it."""
    provenance = view.run.manifest.model.provenance
    made_of = provenance.get("model_provenance")
    # Of a baseline that a recipe made: of the model that it was made of.
    before: Any = provenance.get("previous_quantization") or (
        made_of.get("previous_quantization") if isinstance(made_of, dict) else None
    )
    if not before:
        return None
    if isinstance(before, dict):
        kind, group = before.get("type", "an unnamed format"), before.get("group_size")
        return f"{kind}, groups of {group}" if group else str(kind)
    return str(before)


def on_the_grid_before(view: RunView) -> str | None:
    """A sentence where the weights of arms lay on the grid of their scheme before they were quantized; else None."""
    arms = [arm.arm_id for arm in view.arms if arm.role != "aa" and _changed_nothing(arm.manifest.provenance)]
    if not arms:
        return None
    return (
        f"The model's weights lay on the grid of {', '.join(arms)} already: quantizing changed nothing but perhaps the "
        "rounding of scales, and this comparison says nothing of what the model was once made from."
    )


def _changed_nothing(provenance: dict[str, Any]) -> bool:
    """By the word of the scheme that quantized at load, or of the checkpoint that was taken as it is stored."""
    if "stored_quantization" in provenance:
        return provenance.get("reproduces_source_grid") is True
    return provenance.get(REPRODUCES_AT_LOAD) is True


def provenance_section(view: RunView) -> ProvenanceSection:
    manifest = view.run.manifest
    environment = manifest.environment
    return ProvenanceSection(
        model=Table(
            ["model", manifest.model.name],
            [
                ["weights, SHA-256", manifest.model.weights_sha256 or NOTHING],
                ["tokenizer, SHA-256", manifest.model.tokenizer_sha256 or NOTHING],
                *([key.replace("_", " "), _written(value)] for key, value in manifest.model.provenance.items()),
            ],
        ),
        workload=_workload(view),
        kernels=_kernels(view),
        unlike_kernels=_unlike_kernels(view),
        environment=Table(
            ["machine", environment.platform],
            [
                ["processor", environment.cpu],
                ["device", environment.device],
                ["cores, threads used", f"{environment.cores}, {environment.threads}"],
                ["memory", size(environment.memory_bytes)],
                ["peak memory of the whole process", size(manifest.process_peak_memory_bytes)],
                ["instruction sets", ", ".join(environment.isa)],
                ["Python", environment.python],
            ],
        ),
        versions=Table(["package", "version"], [list(pair) for pair in sorted(environment.versions.items())]),
        command=shlex.join(manifest.command),
        policy=_document(manifest.policy),
        suite=_document(manifest.suite),
    )


def _workload(view: RunView) -> Table | None:
    workload = view.run.manifest.workload
    if workload is None:
        return None
    lengths = "forced to the recorded lengths" if workload.output_lengths == "forced" else "as the model ends them"
    cut = degraded_requests(view.run.requests).num_rows
    if cut:
        lengths += f"; of the arms' requests, {count(cut)} were cut by admission (see their notes)"
    history = "the log's own answers" if workload.history == "recorded" else "the arm's own answers"
    return Table(
        ["traffic", workload.source],
        [
            ["requests per arm and pass", count(workload.requests)],
            ["prompt tokens, output tokens", f"{count(workload.prompt_tokens)}, {count(workload.output_tokens)}"],
            ["span", seconds(workload.span_seconds)],
            ["load", workload.load],
            ["counterbalanced blocks", count(workload.blocks)],
            ["output lengths", lengths],
            ["history of sessions", history],
            ["seed", str(workload.seed)],
            ["source, SHA-256", workload.source_sha256],
            ["plan, SHA-256", workload.plan_sha256],
        ],
    )


def _kernels(view: RunView) -> Table:
    operations = sorted({name for arm in view.arms for name in arm.manifest.kernel_paths})
    rows = [["kernel set", *(arm.manifest.kernel_set for arm in view.arms)]]
    rows += [[name, *(arm.manifest.kernel_paths.get(name, "not used") for arm in view.arms)] for name in operations]
    return Table(["operation", *(arm.arm_id for arm in view.arms)], rows)


def _unlike_kernels(view: RunView) -> list[str]:
    """Operations that every arm has, on paths that differ: then speed differs for more reasons than precision."""
    paths = [arm.manifest.kernel_paths for arm in view.arms]
    shared = set.intersection(*(set(path) for path in paths)) if paths else set()
    unlike = [name for name in sorted(shared) if len({path[name] for path in paths}) > 1]
    sets = {arm.manifest.kernel_set for arm in view.arms}
    return ["the kernel set as a whole", *unlike] if len(sets) > 1 else unlike


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _document(content: dict[str, Any] | None) -> str | None:
    return None if content is None else json.dumps(content, indent=2, ensure_ascii=False)
