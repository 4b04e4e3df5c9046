"""The main job: load, replay, compare quality, judge, report; `results/<run id>/` is true at every moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from quantgate.gate.comparability import check_alike
from quantgate.gate.corrections import waivers_by_arm
from quantgate.gate.judge import judge
from quantgate.gate.policy import Policy
from quantgate.gate.policy_fit import check_policy_fits
from quantgate.gate.verdict_model import Verdict
from quantgate.progress import ProgressReporter
from quantgate.quality.evaluate import QualityProgress
from quantgate.quality.rows import QualityRow, quality_table
from quantgate.quality.task_files import items_sha256
from quantgate.quality.task_item import Task
from quantgate.report.render import render_report
from quantgate.run.arms import ArmPlan, OpenedArms, opened_arms
from quantgate.run.before_loading import builds_prepared, measured_limits, traffic_before_loading
from quantgate.run.quality_phase import evaluation
from quantgate.run.recorder import RunRecorder
from quantgate.run.run_ending import ended_truly, measured_for_good
from quantgate.run.server_logs import server_logs_kept
from quantgate.run.session import RunOptions, open_run, peak_memory_bytes, replay_under
from quantgate.run.workload_phase import Traffic, plan_workload, settled_lengths
from quantgate.store.run_folder import LoadedRun, load_run
from quantgate.suite import LoadedSuite, Suite
from quantgate.workload.blocks import USUAL_BLOCKS
from quantgate.workload.plan import ReplayPlan
from quantgate_engine.executor.compute_thread import each_on_compute_thread


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
    arm_plan = ArmPlan(
        arms=suite.arms,
        model=suite.model,
        tokenizer=suite.tokenizer,
        engine=suite.engine,
        aa=suite.aa,
        one_at_a_time=suite.device == "one_at_a_time",
        request_timeout_s=suite.workload.request_timeout_s,
    )
    traffic = traffic_before_loading(
        loaded.trace_path, suite.workload, arm_plan, suite.seed, options.results, loaded.columns_path
    )
    _check_policy(policy, suite, traffic, tasks)
    builds_prepared(arm_plan, progress)
    limits = measured_limits(arm_plan)
    with opened_arms(
        arm_plan, perturbations=options.perturbations, keep_text=options.keep_text, progress=progress
    ) as arms:
        # Unlike arms get no verdict; better to say so before an hour of replay than after it.
        check_alike(arms.manifests(), policy)
        workload = settled_lengths(suite.workload, arms)
        plan = plan_workload(traffic, workload, arms.tokenizer, suite.seed, arms.max_context_tokens)
        recorder = open_run(arms, plan, workload, options, suite=suite, policy=policy, limits=limits)
        progress.note(f"results: {recorder.folder.path}")
        if workload.blocks == "auto" and plan.num_blocks < USUAL_BLOCKS:
            progress.note(f"blocks: {plan.num_blocks}, one for each session or single request of the traffic")
        with ended_truly(recorder, progress), server_logs_kept(arms.log_folder, recorder.folder):
            requests = replay_under(recorder, arms, plan, workload, progress)
            _quality(recorder, suite, arms, plan, requests, tasks, progress)
            recorder.update(arms=arms.manifests(), process_peak_memory_bytes=peak_memory_bytes())
        with measured_for_good(recorder, progress, then="quantgate gate"):
            recorder.measured()
            run = load_run(recorder.folder.path)
            verdict = judge(run, policy, today=datetime.now(UTC).date(), seed=suite.seed)
            recorder.folder.write_text("verdict.json", verdict.model_dump_json(by_alias=True, indent=2) + "\n")
            recorder.enter("report")
            recorder.folder.write_text("report.html", render_report(run, verdict))
            recorder.enter("done")
    return FinishedRun(recorder.folder.path, run, verdict)


def _check_policy(policy: Policy, suite: Suite, traffic: Traffic, tasks: list[Task]) -> None:
    """What would stop the verdict is said before anything is measured."""
    waivers_by_arm(policy, datetime.now(UTC).date())
    check_policy_fits(
        policy,
        classes=traffic.slo_classes,
        tasks={task.name for task in tasks},
        arms={arm.arm_id for arm in suite.arms if arm.role == "candidate"},
    )


def _quality(
    recorder: RunRecorder,
    suite: Suite,
    arms: OpenedArms,
    plan: ReplayPlan,
    requests: pa.Table,
    tasks: list[Task],
    progress: ProgressReporter,
) -> None:
    recorder.update(phase="quality", quality_items_sha256=items_sha256(tasks))
    rows: list[QualityRow] = []
    try:
        if suite.quality is not None:
            with progress.phase("quality", 100) as advance:

                def on_progress(state: QualityProgress) -> None:
                    advance(round(100 * state.done_tokens / max(1, state.total_tokens)), state.stage)

                measured = evaluation(arms, suite.quality, tasks, plan, requests, on_progress)
                try:
                    for batch in each_on_compute_thread(measured):
                        rows += batch
                finally:
                    recorder.update(quality_tiers=measured.statuses)
    finally:
        recorder.folder.write_table("quality", quality_table(rows))
