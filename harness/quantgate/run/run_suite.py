"""The main job: load, replay, compare quality, judge, report; `results/<run id>/` is true at every moment."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom

from quantgate.cli.progress import ProgressReporter
from quantgate.environment import capture_environment
from quantgate.gate.judge import judge
from quantgate.gate.policy import Policy
from quantgate.gate.verdict_model import Verdict
from quantgate.quality.evaluate import QualityProgress
from quantgate.quality.rows import QualityRow, quality_table
from quantgate.quality.task_item import Task
from quantgate.replay.progress import ReplayProgress
from quantgate.report.render import render_report
from quantgate.run.arms import LoadedArms, load_arms
from quantgate.run.quality_phase import quality_rows
from quantgate.run.recorder import RunRecorder
from quantgate.run.replay_phase import certificates, replay_arms
from quantgate.run.workload_phase import plan_workload, workload_manifest
from quantgate.store.manifest import RunManifest
from quantgate.store.run_folder import LoadedRun, RunFolder, load_run
from quantgate.suite import LoadedSuite
from quantgate.workload.plan import ReplayPlan
from quantgate_engine.clock import MonotonicClock
from quantgate_engine.errors import QuantgateError
from quantgate_engine.quant.perturbation import WeightPerturbation


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command line adds to a suite."""

    results: Path
    command: list[str]
    keep_text: bool = True
    perturbations: Mapping[str, WeightPerturbation] = field(default_factory=dict)


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
        arms = load_arms(suite, options.perturbations, advance)
    context = suite.engine.max_context_tokens
    plan = plan_workload(loaded.trace_path, suite.workload, arms.baseline.tokenizer, suite.seed, context)
    recorder = _open_folder(loaded, policy, options, arms, plan)
    progress.note(f"results: {recorder.folder.path}")
    with _ended_truly(recorder):
        _replay(recorder, loaded, arms, plan, progress)
        _quality(recorder, loaded, arms, plan, tasks, progress)
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


def peak_memory_bytes() -> int:
    """Largest resident set of this process so far (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _open_folder(
    loaded: LoadedSuite, policy: Policy, options: RunOptions, arms: LoadedArms, plan: ReplayPlan
) -> RunRecorder:
    now = datetime.now(UTC)
    folder = RunFolder.create(options.results, now=now, random=SystemRandom(), keep_text=options.keep_text)
    manifest = RunManifest(
        run_id=folder.run_id,
        state="running",
        phase="load",
        created_utc=now.isoformat(timespec="seconds"),
        command=options.command,
        suite=loaded.suite.model_dump(mode="json", by_alias=True),
        policy=policy.model_dump(mode="json", by_alias=True),
        seed=loaded.suite.seed,
        model=arms.model_manifest(),
        arms=arms.manifests(),
        workload=workload_manifest(plan, loaded.suite.workload),
        environment=capture_environment(),
        planted={arm_id: p.relative_sigma for arm_id, p in options.perturbations.items()},
    )
    return RunRecorder(folder, manifest, lambda: datetime.now(UTC))


@contextmanager
def _ended_truly(recorder: RunRecorder) -> Iterator[None]:
    """Whatever ends the run, the manifest says it, and the report shows how far it came."""
    try:
        yield
    except KeyboardInterrupt:
        recorder.interrupted()
        _report_what_there_is(recorder)
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, QuantgateError) else f"{type(error).__name__}: {error}"
        # A full disk may refuse this write too; the first error is the one to tell.
        with _suppressed():
            recorder.failed(reason)
            _report_what_there_is(recorder)
        raise


@contextmanager
def _suppressed() -> Iterator[None]:
    try:
        yield
    except QuantgateError:
        return


def _report_what_there_is(recorder: RunRecorder) -> None:
    run = load_run(recorder.folder.path)
    recorder.folder.write_text("report.html", render_report(run, None))


def _replay(
    recorder: RunRecorder, loaded: LoadedSuite, arms: LoadedArms, plan: ReplayPlan, progress: ProgressReporter
) -> None:
    workload = loaded.suite.workload
    recorder.enter("replay")
    total = workload.passes * len(plan.requests) * len(arms.replay_arms)
    with progress.phase("replay", total) as advance:

        def on_progress(state: ReplayProgress) -> None:
            advance(state.requests_done, f"{state.arm_id}, turn {state.cells_done + 1} of {state.cells_total}")

        log = replay_arms(
            plan, arms.replay_arms, workload, recorder.folder, clock=MonotonicClock(), on_progress=on_progress
        )
    recorder.update(arms=arms.manifests(), fidelity=certificates(log, arms.replay_arms, plan, workload))


def _quality(
    recorder: RunRecorder,
    loaded: LoadedSuite,
    arms: LoadedArms,
    plan: ReplayPlan,
    tasks: list[Task],
    progress: ProgressReporter,
) -> None:
    recorder.enter("quality")
    config = loaded.suite.quality
    rows: list[QualityRow] = []
    if config is not None:
        requests = load_run(recorder.folder.path).requests
        with progress.phase("quality", 100) as advance:

            def on_progress(state: QualityProgress) -> None:
                advance(100 * state.done_tokens / max(1, state.total_tokens), state.stage)

            try:
                for batch in quality_rows(arms, config, tasks, plan, requests, on_progress):
                    rows += batch
            finally:
                recorder.folder.write_table("quality", quality_table(rows))
    else:
        recorder.folder.write_table("quality", quality_table(rows))
