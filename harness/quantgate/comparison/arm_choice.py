"""Which arm of one run is compared with which of another."""

from __future__ import annotations

from quantgate.store.run_folder import LoadedRun
from quantgate_engine.errors import ConfigurationError

ArmPair = tuple[str, str]
"""Arm of the first run, arm of the other."""


def parse_arm_pair(written: str) -> ArmPair:
    """`fp16:int4-g64`. Raises ConfigurationError."""
    first, separator, other = written.partition(":")
    if not (separator and first and other):
        raise ConfigurationError(
            f"--arms is {written!r}; expected an arm of the first run and one of the others, such as fp16:int4-g64."
        )
    return first, other


def paired_arms(first: LoadedRun, other: LoadedRun, asked: ArmPair | None) -> list[ArmPair]:
    """The arms that are asked for; else those of the same id; else the only arm of each.

    Empty where nothing says which arms belong together. Raises ConfigurationError for an arm that its run has not.
    """
    own, others = _served(first), _served(other)
    if asked is not None:
        _check(asked[0], own, first)
        _check(asked[1], others, other)
        return [asked]
    shared = [arm_id for arm_id in own if arm_id in others]
    if shared:
        return [(arm_id, arm_id) for arm_id in shared]
    return [(own[0], others[0])] if len(own) == len(others) == 1 else []


def _served(run: LoadedRun) -> list[str]:
    """Arms with requests, the A/A arm aside: it is its baseline once more."""
    seen = set(run.requests.column("arm_id").to_pylist())
    return [arm.arm_id for arm in run.manifest.arms if arm.arm_id in seen and arm.role != "aa"]


def _check(arm_id: str, known: list[str], run: LoadedRun) -> None:
    if arm_id not in known:
        raise ConfigurationError(
            f"--arms names {arm_id!r}, which run {run.manifest.run_id} has not; its arms are: {', '.join(known)}."
        )
