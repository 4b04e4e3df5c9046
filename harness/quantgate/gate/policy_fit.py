"""Whether a policy speaks of what a run has: a rule about something absent could never be decided."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from quantgate.gate.evidence import Pairing
from quantgate.gate.policy import GainRule, Policy, Rule
from quantgate_engine.errors import ConfigurationError


def check_policy_fits(
    policy: Policy, *, classes: Collection[str], tasks: Collection[str], arms: Collection[str]
) -> None:
    """Before a run: every SLO class, task and arm that the policy names is one that the run will have.

    classes: of the planned requests. tasks: of the suite; none where it measures none (then rules on tasks stay
    unmeasured, and say so). arms: ids of the candidates. Raises ConfigurationError for the first that is not there.
    """
    for rule in policy.rules:
        _require(policy, f"rule {rule.name}", "SLO class", rule.slo_class, classes)
        _require(policy, f"rule {rule.name}", "task", rule.task if tasks else None, tasks)
    for gain in policy.gain.rules if policy.gain else []:
        _require(policy, f"gain {gain.name}", "SLO class", gain.slo_class, classes)
    for waiver in policy.waivers:
        _require(policy, f"the waiver of rule {waiver.rule}", "candidate arm", waiver.arm, arms)


def absent_subject(pairing: Pairing, asked: Rule | GainRule) -> str | None:
    """Of a stored run: the SLO class or task of a rule that nothing in the run has, in one sentence; else None."""
    classes = {str(name) for name in pairing.baseline.column("slo_class").to_pylist()}
    if asked.slo_class is not None and classes and asked.slo_class not in classes:
        return f"No request has class {asked.slo_class!r}; this run has {_listed(classes)}."
    task = asked.task if isinstance(asked, Rule) else None
    tasks = pairing.tasks()
    if task is not None and tasks and task not in tasks:
        return f"No item is of task {task!r}; this run has {_listed(tasks)}."
    return None


def _require(policy: Policy, who: str, kind: str, name: str | None, there: Collection[str]) -> None:
    if name is None or name in there:
        return
    near = difflib.get_close_matches(name, there, n=1)
    advice = f"did you mean {near[0]!r}?" if near else f"expected one of: {_listed(there)}."
    raise ConfigurationError(
        f"Policy {policy.name}: {who} is about the {kind} {name!r}, which this run does not have; {advice}"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
