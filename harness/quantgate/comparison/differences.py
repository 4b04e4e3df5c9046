"""What differs between two runs besides the arm: a reader must know before trusting a difference in speed."""

from __future__ import annotations

from collections.abc import Callable

from quantgate.comparison.merged_run import ArmOfRun
from quantgate.store.manifest import ArmManifest, Environment
from quantgate_engine.counted import counted


def differences(baseline: ArmOfRun, candidate: ArmOfRun) -> list[str]:
    """One sentence each; the first always stands: the runs did not take turns on one machine."""
    runs = baseline.run.manifest, candidate.run.manifest
    notes = [
        f"The runs did not take turns: {runs[0].run_id} began {runs[0].created_utc}, {runs[1].run_id} "
        f"{runs[1].created_utc}; what the machine did in between is part of every difference in time."
    ]
    for title, read in _ENVIRONMENT.items():
        values = read(runs[0].environment), read(runs[1].environment)
        if values[0] != values[1]:
            notes.append(f"{title} differs: {values[0]} against {values[1]}.")
    arms = _arm(baseline), _arm(candidate)
    for title, of_arm in _ARM.items():
        names = of_arm(arms[0]), of_arm(arms[1])
        if names[0] != names[1]:
            notes.append(f"{title} differs: {names[0]} against {names[1]}.")
    notes += [
        f"Run {run.run_id} is {run.state}: only the requests that it got to are compared."
        for run in runs
        if run.state != "complete"
    ]
    for arm in (baseline, candidate):
        certificates = [entry for entry in arm.run.manifest.fidelity if entry.arm_id == arm.arm_id]
        if not certificates or not certificates[0].valid:
            notes.append(f"{arm.name} was not given its load, or nothing certifies that it was.")
    return notes


def same_slo(baseline: ArmOfRun, candidate: ArmOfRun) -> dict[str, dict[str, float]]:
    """The SLO limits of both runs' policies by class and metric; empty where they differ or there are none."""
    stated = [((arm.run.manifest.policy or {}).get("slo") or {}) for arm in (baseline, candidate)]
    if stated[0] != stated[1]:
        return {}
    return {
        name: {metric: float(limit) for metric, limit in limits.items() if limit is not None}
        for name, limits in stated[0].items()
    }


def same_items(baseline: ArmOfRun, candidate: ArmOfRun) -> bool:
    """Whether both runs asked the same task items with the same checkers."""
    own, other = (arm.run.manifest.quality_items_sha256 for arm in (baseline, candidate))
    return own is not None and own == other


def _arm(arm: ArmOfRun) -> ArmManifest:
    return next(entry for entry in arm.run.manifest.arms if entry.arm_id == arm.arm_id)


_ENVIRONMENT: dict[str, Callable[[Environment], str]] = {
    "The device": lambda environment: environment.device,
    "The processor": lambda environment: f"{environment.cpu}, {counted(environment.cores, 'core')}",
    "The number of threads": lambda environment: str(environment.threads),
}

_ARM: dict[str, Callable[[ArmManifest], str]] = {
    "The target": lambda arm: arm.target,
    "The model": lambda arm: arm.model,
    "The precision": lambda arm: arm.scheme,
    "The KV cache's type": lambda arm: arm.kv_dtype,
    "The compute type": lambda arm: arm.compute_dtype,
    "The kernel set": lambda arm: arm.kernel_set,
}
