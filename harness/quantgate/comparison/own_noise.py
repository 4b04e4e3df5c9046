"""How far a run's baseline differs from itself: what a difference between runs has to exceed to mean anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quantgate.gate.evidence import Evidence, Pairing
from quantgate.gate.families.rule_metric import Measurement
from quantgate.store.run_folder import LoadedRun


def own_pairs(runs: Iterable[LoadedRun]) -> list[Pairing]:
    """Baseline and A/A arm of every run that replayed both."""
    found = []
    for run in runs:
        arms = {arm.role: arm.arm_id for arm in run.manifest.arms}
        served = set(run.requests.column("arm_id").to_pylist())
        if {arms.get("baseline"), arms.get("aa")} <= served:
            found.append(Evidence(run).pair(arms["baseline"], arms["aa"]))
    return found


def own_noise(pairs: Iterable[Pairing], measure: Callable[[Pairing], Measurement]) -> float | None:
    """The largest absolute limit of the A/A losses; None where no run measured one."""
    measured = [measure(pair) for pair in pairs]
    limits = [
        abs(limit)
        for own in measured
        if own.estimate is not None and own.uninformative is None
        for limit in own.estimate.interval
    ]
    return max(limits, default=None)
