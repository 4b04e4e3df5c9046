"""One arm under one trace: measures and reports, judges nothing."""

from __future__ import annotations

from pathlib import Path

from quantgate.progress import ProgressReporter
from quantgate.quality.rows import quality_table
from quantgate.report.render import render_report
from quantgate.run.arms import ArmPlan, opened_arms
from quantgate.run.before_loading import builds_prepared, measured_limits, traffic_before_loading
from quantgate.run.run_ending import ended_truly, measured_for_good
from quantgate.run.server_logs import server_logs_kept
from quantgate.run.session import RunOptions, open_run, peak_memory_bytes, replay_under
from quantgate.run.workload_phase import plan_workload, settled_lengths
from quantgate.store.run_folder import LoadedRun, load_run
from quantgate.suite import WorkloadConfig


def replay_trace(
    trace: Path,
    arm: ArmPlan,
    workload: WorkloadConfig,
    seed: int,
    options: RunOptions,
    progress: ProgressReporter,
) -> tuple[Path, LoadedRun]:
    """Returns the run's folder and the run. An interrupt or a failure leaves a folder and a report that say so.

    `arm` has the one arm that is replayed, as a baseline.
    """
    traffic = traffic_before_loading(trace, workload, arm, seed, options.results)
    builds_prepared(arm, progress)
    limits = measured_limits(arm)
    with opened_arms(arm, perturbations=options.perturbations, keep_text=options.keep_text, progress=progress) as arms:
        workload = settled_lengths(workload, arms)
        plan = plan_workload(traffic, workload, arms.tokenizer, seed, arms.max_context_tokens)
        recorder = open_run(arms, plan, workload, options, engine=arm.engine, limits=limits)
        progress.note(f"results: {recorder.folder.path}")
        with ended_truly(recorder, progress), server_logs_kept(arms.log_folder, recorder.folder):
            replay_under(recorder, arms, plan, workload, progress)
            recorder.folder.write_table("quality", quality_table([]))
            recorder.update(process_peak_memory_bytes=peak_memory_bytes())
        with measured_for_good(recorder, progress, then="quantgate report"):
            recorder.measured()
            run = load_run(recorder.folder.path)
            recorder.folder.write_text("report.html", render_report(run, None))
            recorder.enter("done")
    return recorder.folder.path, run
