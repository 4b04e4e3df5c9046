"""Proposes a policy from the baseline that a stored run measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from quantgate.gate.policy import Policy, load_policy
from quantgate.metrics.columns import is_equal
from quantgate.resources import find_policy
from quantgate.setup_files.policy_text import policy_text
from quantgate.setup_files.slo_proposal import ClassProposals, propose_slos, slo_classes
from quantgate.store.run_folder import LoadedRun
from quantgate.validation import parse_yaml_model
from quantgate_engine.errors import BaselineError, ConfigurationError


@dataclass(frozen=True, slots=True)
class ProposedPolicy:
    """The text of a policy file that is valid, and what its limits came from."""

    text: str
    policy: Policy
    base: str
    arm_id: str
    proposals: Mapping[str, ClassProposals]


def propose_policy(run: LoadedRun, name: str, *, base: str | None, headroom: float) -> ProposedPolicy:
    """base: a policy's name or file; None chooses the ready one that fits the classes of the traffic.

    A class whose requests are too few for a limit gets none, and the text says how many are needed. Raises
    BaselineError where the run measured no usable baseline; ConfigurationError where the base has rules about a class
    that the traffic has not.
    """
    arm_id, requests = _baseline(run)
    classes = slo_classes(requests)
    chosen = load_policy(find_policy(base or _fitting_base(classes)))
    _check_classes(chosen, classes, run)
    proposals = propose_slos(requests, headroom=headroom, confidence=chosen.confidence)
    workload = run.manifest.workload
    load = "" if workload is None or workload.clients is None else f" ({workload.load})"
    measured = f"{arm_id} of run {run.manifest.run_id}{load}"
    limit = f"upper {chosen.confidence:.0%} limit of the percentile x {headroom:g}"
    text = policy_text(name, f"{measured}, {limit}", chosen, proposals)
    policy = parse_yaml_model(text, Policy, name="the proposed policy")
    return ProposedPolicy(text, policy, chosen.name, arm_id, proposals)


def _baseline(run: LoadedRun) -> tuple[str, pa.Table]:
    manifest = run.manifest
    baselines = [arm.arm_id for arm in manifest.arms if arm.role == "baseline"]
    if len(baselines) != 1:
        names = ", ".join(baselines) or "none"
        raise BaselineError(f"Run {manifest.run_id} has baselines: {names}; expected exactly one to take limits from.")
    arm_id = baselines[0]
    certificate = next((entry for entry in manifest.fidelity if entry.arm_id == arm_id), None)
    if certificate is None:
        raise BaselineError(
            f"Run {manifest.run_id} ended before arm {arm_id} had been replayed; take limits from a complete run."
        )
    if not certificate.valid:
        raise BaselineError(
            f"Arm {arm_id} of run {manifest.run_id} was not given its load ({' '.join(certificate.reasons)}); take "
            "limits from a run that delivered it."
        )
    return arm_id, run.requests.take(np.flatnonzero(is_equal(run.requests, "arm_id", arm_id)))


def _fitting_base(classes: list[str]) -> str:
    """Ready policies are written for the classes `interactive` and `batch`."""
    return {"interactive": "chat", "batch": "batch"}.get(" ".join(classes), "mixed")


def _check_classes(base: Policy, classes: list[str], run: LoadedRun) -> None:
    of_rules = {rule.slo_class for rule in base.rules}
    of_gains = {gain.slo_class for gain in base.gain.rules} if base.gain else set()
    missing = sorted(name for name in of_rules | of_gains if name and name not in classes)
    if missing:
        raise ConfigurationError(
            f"Policy {base.name} has rules about {', '.join(missing)} requests, but the traffic of run "
            f"{run.manifest.run_id} has only {', '.join(classes)}; start from another policy with --base, such as ci."
        )
