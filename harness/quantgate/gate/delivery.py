"""Whether a run and an arm delivered the load that a verdict presupposes."""

from __future__ import annotations

from quantgate.gate.evidence import Evidence, Pairing
from quantgate.store.manifest import RunManifest
from quantgate_engine.counted import counted, plural


def run_problems(manifest: RunManifest) -> list[str]:
    """Why the whole run carries no verdict. A run is complete once all is measured, whatever befell its own verdict."""
    if manifest.state == "complete":
        return []
    cause = f" ({manifest.failure})" if manifest.failure else ""
    return [f"The run is {manifest.state} in phase {manifest.phase}{cause}; a verdict needs a complete run."]


def load_notes(manifest: RunManifest) -> list[str]:
    """What kind of load the verdict rests on, where it is not traffic that comes whatever the arms do."""
    workload = manifest.workload
    if workload is None or workload.clients is None:
        return []
    return [
        f"Load: {workload.load}. A slower arm was sent less, so times that count from the schedule, goodput and SLO "
        "attainment do not tell how an arm bears a given rate of arrivals."
    ]


def arm_problems(manifest: RunManifest, evidence: Evidence, arm_id: str, pairing: Pairing | None = None) -> list[str]:
    """Why this arm's load does not count. An arm without requests (quality alone) has no load to deliver."""
    problems = []
    certificate = next((entry for entry in manifest.fidelity if entry.arm_id == arm_id), None)
    if certificate is None:
        if evidence.request_count(arm_id):
            problems.append(f"Arm {arm_id} has no certificate of the load that it was given.")
    elif not certificate.valid:
        problems += [f"Arm {arm_id} was not given its load: {reason}" for reason in certificate.reasons]
        problems += [] if problems else [f"Arm {arm_id} was not given its load."]
    if pairing is not None and pairing.unpaired:
        problems.append(
            f"{counted(pairing.unpaired, 'request')} of {pairing.baseline_id} and {arm_id} "
            f"{plural(pairing.unpaired, 'has', 'have')} no counterpart on the other arm."
        )
    return problems
