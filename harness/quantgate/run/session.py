"""Opens a run's folder and replays a plan into it: what every kind of run does."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom

import pyarrow as pa

from quantgate.engine_settings.engine import EngineSettings
from quantgate.environment import capture_environment
from quantgate.gate.policy import Policy
from quantgate.progress import ProgressReporter
from quantgate.replay.nothing_answered import refuse_nothing_answered
from quantgate.replay.progress import ReplayProgress
from quantgate.run.arms import OpenedArms
from quantgate.run.recorder import RunRecorder
from quantgate.run.replay_phase import certificates, replay_arms
from quantgate.run.workload_phase import workload_manifest
from quantgate.store.manifest import MeasuredLimits, RunManifest
from quantgate.store.run_folder import RunFolder
from quantgate.suite import Suite, WorkloadConfig
from quantgate.workload.plan import ReplayPlan
from quantgate_engine.quant.perturbation import WeightPerturbation
from quantgate_kernels.roofline import DeviceLimits


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command line adds to a suite."""

    results: Path
    command: list[str]
    keep_text: bool = True
    perturbations: Mapping[str, WeightPerturbation] = field(default_factory=dict)


def open_run(
    arms: OpenedArms,
    plan: ReplayPlan,
    workload: WorkloadConfig,
    options: RunOptions,
    *,
    suite: Suite | None = None,
    policy: Policy | None = None,
    engine: EngineSettings | None = None,
    limits: DeviceLimits | None = None,
) -> RunRecorder:
    """Makes the run's folder with its manifest. engine: the bundled engine's settings, where no suite states them.
    limits: as `measured_limits` found them.

    Raises RunError where that is not possible.
    """
    now = datetime.now(UTC)
    folder = RunFolder.create(options.results, now=now, random=SystemRandom(), keep_text=options.keep_text)
    manifest = RunManifest(
        run_id=folder.run_id,
        state="running",
        phase="load",
        created_utc=now.isoformat(timespec="seconds"),
        command=options.command,
        suite=suite.as_recorded() if suite else None,
        policy=policy.model_dump(mode="json", by_alias=True) if policy else None,
        engine=engine.as_recorded() if engine else None,
        seed=plan.seed,
        model=arms.model_manifest(),
        arms=arms.manifests(),
        workload=workload_manifest(plan, workload),
        environment=capture_environment(_device(suite.engine if suite else engine)),
        device_limits=MeasuredLimits.model_validate(asdict(limits)) if limits else None,
        planted={arm_id: planted.relative_sigma for arm_id, planted in options.perturbations.items()},
    )
    return RunRecorder(folder, manifest, lambda: datetime.now(UTC))


def _device(engine: EngineSettings | None) -> str:
    """What bundled arms run on, in the engine's words; a server's own device is not known."""
    from quantgate_engine.executor.device.choice import chosen_device, shown_device

    return "cpu" if engine is None else shown_device(chosen_device(engine.device))


def replay_under(
    recorder: RunRecorder, arms: OpenedArms, plan: ReplayPlan, workload: WorkloadConfig, progress: ProgressReporter
) -> pa.Table:
    """Replays the plan on every arm and certifies the load; the tables and the manifest are written as it goes.

    Returns the requests with their texts, which a run without text does not find in its folder. Raises RunError where
    none of them was answered, on any arm.
    """
    recorder.enter("replay")
    total = workload.passes * len(plan.requests) * len(arms.replay_arms)
    with progress.phase("replay", total) as advance:

        def on_progress(state: ReplayProgress) -> None:
            turn = min(state.cells_done + 1, state.cells_total)
            advance(state.requests_done, f"{state.arm_id}, turn {turn} of {state.cells_total}")

        replayed = replay_arms(plan, arms, workload, recorder.folder, on_progress=on_progress)
    arms.replay_notes.update(replayed.notes)
    recorder.update(arms=arms.manifests(), fidelity=certificates(replayed.log, arms, plan, workload))
    requests = replayed.log.requests()
    refuse_nothing_answered(requests, workload.request_timeout_s)
    return requests


def peak_memory_bytes() -> int:
    """Largest resident set of this process so far (Linux counts it in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
