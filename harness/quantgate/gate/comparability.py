"""Whether the arms of a run may be compared at all."""

from __future__ import annotations

from quantgate.gate.policy import MatchField, Policy
from quantgate.store.manifest import ArmManifest, RunManifest
from quantgate_engine.errors import BaselineError, ConfigurationError

_EXPECTED_ALIKE: tuple[MatchField, ...] = ("model", "tokenizer_fingerprint")
"""Builds of one model share these; a difference is seldom meant."""
_SHOWN_CHARACTERS = 60
_FIRST_CHARACTERS = 12


def baseline_arm(manifest: RunManifest) -> ArmManifest:
    """The run's one baseline. Raises BaselineError where there is none, ConfigurationError without a candidate."""
    baselines = [arm for arm in manifest.arms if arm.role == "baseline"]
    if len(baselines) != 1:
        names = ", ".join(arm.arm_id for arm in baselines) or "none"
        raise BaselineError(f"Run {manifest.run_id} has baselines: {names}; expected exactly one to compare with.")
    if not any(arm.role == "candidate" for arm in manifest.arms):
        raise ConfigurationError(f"Run {manifest.run_id} has no candidate to judge; add an arm to its suite.")
    return baselines[0]


def check_alike(arms: list[ArmManifest], policy: Policy) -> None:
    """Raises BaselineError where a candidate is unlike the baseline in what the policy wants equal."""
    baseline = next(arm for arm in arms if arm.role == "baseline")
    check_match(baseline, [arm for arm in arms if arm.role == "candidate"], policy)


def check_match(baseline: ArmManifest, candidates: list[ArmManifest], policy: Policy) -> None:
    """Raises BaselineError where a candidate differs in a property that the policy wants equal.

    What one of the two does not tell is not compared; `untold_properties` says so.
    """
    for candidate in candidates:
        for name in policy.must_match:
            own, other = getattr(baseline, name), getattr(candidate, name)
            if own != other and _is_told(own) and _is_told(other):
                raise BaselineError(
                    f"Arms {baseline.arm_id} and {candidate.arm_id} differ in {name} ({own} against {other}), which "
                    f"policy {policy.name} wants equal (must_match); run them alike or change the policy."
                )


def untold_properties(baseline: ArmManifest, candidates: list[ArmManifest], policy: Policy) -> list[str]:
    """A notice per property that the policy wants equal and that some arm does not tell."""
    notes = []
    for name in policy.must_match:
        silent = [arm.arm_id for arm in (baseline, *candidates) if not _is_told(getattr(arm, name))]
        if silent:
            notes.append(f"{name}, which policy {policy.name} wants equal, is not told by {', '.join(silent)}.")
    return notes


def unlike_properties(baseline: ArmManifest, candidates: list[ArmManifest], policy: Policy) -> list[str]:
    """A notice per candidate of another model or tokenizer, where the policy does not want them equal."""
    return [
        f"{candidate.arm_id} and {baseline.arm_id} differ in {name} ({_short(other)} against {_short(own)}); policy "
        f"{policy.name} does not want it equal (must_match), so they were compared all the same."
        for candidate in candidates
        for name in _EXPECTED_ALIKE
        if name not in policy.must_match
        for own, other in [(getattr(baseline, name), getattr(candidate, name))]
        if own != other and _is_told(own) and _is_told(other)
    ]


def _short(value: str) -> str:
    """A fingerprint's first digits tell it from another."""
    return value if len(value) <= _SHOWN_CHARACTERS else f"{value[:_FIRST_CHARACTERS]}..."


def _is_told(value: str | None) -> bool:
    return value not in (None, "unknown")


def unlike_paths(baseline: ArmManifest, candidates: list[ArmManifest]) -> list[str]:
    """A notice per candidate whose operations took other kernel paths than the baseline's."""
    notes = []
    for candidate in candidates:
        shared = baseline.kernel_paths.keys() & candidate.kernel_paths.keys()
        unlike = sorted(name for name in shared if baseline.kernel_paths[name] != candidate.kernel_paths[name])
        if unlike:
            notes.append(
                f"{candidate.arm_id} took other kernel paths than {baseline.arm_id} for {', '.join(unlike)}: "
                "differences in speed are those of precision and path together."
            )
    return notes
