"""The main job: load, replay, compare quality, judge, report; `results/<run id>/` is true at every moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quantgate.gate.judge import judge
from quantgate.gate.policy import Policy
from quantgate.gate.verdict_model import Verdict
from quantgate.progress import ProgressReporter
from quantgate.quality.evaluate import QualityProgress
from quantgate.quality.rows import QualityRow, quality_table
from quantgate.quality.task_files import items_sha256
from quantgate.quality.task_item import Task
from quantgate.report.render import render_report
from quantgate.run.arms import LoadedArms, load_arms
from quantgate.run.quality_phase import quality_rows
from quantgate.run.recorder import RunRecorder
from quantgate.run.run_ending import ended_truly
from quantgate.run.session import RunOptions, open_run, peak_memory_bytes, replay_under
from quantgate.run.workload_phase import plan_workload
from quantgate.store.run_folder import LoadedRun, load_run
from quantgate.suite import LoadedSuite, Suite
from quantgate.workload.plan import ReplayPlan


@dataclass(frozen=True, slots=True)
class FinishedRun:
    folder: Path
    run: LoadedRun
    verdict: Verdict


def run_suite(
    loaded: LoadedSuite, policy: Policy, tasks: list[Task], options: RunOptions, progress: ProgressReporter
) -> FinishedRun:
    """Runs a suite and judges it.

    An interrupt or a failure leaves a folder that says so, with every finished cell and quality batch in its tables and
    a report of them.
    """
    suite = loaded.suite
    with progress.phase("load", len(suite.arms)) as advance:
        arms = load_arms(
            suite.model,
            suite.arms,
            suite.engine,
            aa=suite.aa,
            perturbations=options.perturbations,
            advance=advance,
        )
    tokenizer = arms.baseline.tokenizer
    plan = plan_workload(loaded.trace_path, suite.workload, tokenizer, suite.seed, arms.max_context_tokens)
    recorder = open_run(arms, plan, suite.workload, options, suite=suite, policy=policy)
    progress.note(f"results: {recorder.folder.path}")
    with ended_truly(recorder):
        replay_under(recorder, arms, plan, suite.workload, progress)
        _quality(recorder, suite, arms, plan, tasks, progress)
        recorder.update(arms=arms.manifests(), process_peak_memory_bytes=peak_memory_bytes())
        recorder.complete()
        recorder.enter("judge")
        run = load_run(recorder.folder.path)
        verdict = judge(run, policy, today=datetime.now(UTC).date(), seed=suite.seed)
        recorder.folder.write_text("verdict.json", verdict.model_dump_json(by_alias=True, indent=2) + "\n")
        recorder.enter("report")
        recorder.folder.write_text("report.html", render_report(run, verdict))
        recorder.enter("done")
    return FinishedRun(recorder.folder.path, run, verdict)


def _quality(
    recorder: RunRecorder,
    suite: Suite,
    arms: LoadedArms,
    plan: ReplayPlan,
    tasks: list[Task],
    progress: ProgressReporter,
) -> None:
    recorder.update(phase="quality", quality_items_sha256=items_sha256(tasks))
    rows: list[QualityRow] = []
    try:
        if suite.quality is not None:
            requests = load_run(recorder.folder.path).requests
            with progress.phase("quality", 100) as advance:

                def on_progress(state: QualityProgress) -> None:
                    advance(round(100 * state.done_tokens / max(1, state.total_tokens)), state.stage)

                for batch in quality_rows(arms, suite.quality, tasks, plan, requests, on_progress):
                    rows += batch
    finally:
        recorder.folder.write_table("quality", quality_table(rows))
