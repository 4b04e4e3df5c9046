"""A stored run, sliced by arm once, as every section reads it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from quantgate.gate.verdict_model import Verdict
from quantgate.metrics.columns import is_equal
from quantgate.metrics.endless_times import times_or_endless
from quantgate.metrics.registry import request_metric
from quantgate.store.manifest import ArmManifest
from quantgate.store.run_folder import LoadedRun

_ROLE_WORDS = {"baseline": "baseline", "candidate": "candidate", "aa": "baseline again (A/A)"}


@dataclass(frozen=True)
class ArmView:
    """One arm: what it is, its rows, and the style that stands for it in every chart."""

    manifest: ArmManifest
    style: int
    requests: pa.Table
    steps: pa.Table
    quality: pa.Table

    @property
    def arm_id(self) -> str:
        return self.manifest.arm_id

    @property
    def role(self) -> str:
        return self.manifest.role

    @property
    def role_words(self) -> str:
        return _ROLE_WORDS[self.manifest.role]

    @property
    def finished(self) -> int:
        return int(is_equal(self.requests, "status", "finished").sum())

    def values(self, metric: str) -> np.ndarray:
        """A request metric [n], without the requests for which it is undefined: for means."""
        values = request_metric(metric)(self.requests)
        return values[np.isfinite(values)]

    def times(self, metric: str) -> np.ndarray:
        """See `times_of`."""
        return times_of(self.requests, metric)


@dataclass(frozen=True)
class RunView:
    run: LoadedRun
    verdict: Verdict | None
    price_per_hour: float | None = None

    @cached_property
    def arms(self) -> list[ArmView]:
        ordered = sorted(self.run.manifest.arms, key=lambda arm: _ROLE_ORDER[arm.role])
        return [
            ArmView(
                arm,
                style,
                _of_arm(self.run.requests, arm.arm_id),
                _of_arm(self.run.steps, arm.arm_id),
                _of_arm(self.run.quality, arm.arm_id),
            )
            for style, arm in enumerate(ordered)
        ]

    @cached_property
    def baseline(self) -> ArmView | None:
        return next((arm for arm in self.arms if arm.role == "baseline"), None)

    @property
    def candidates(self) -> list[ArmView]:
        return [arm for arm in self.arms if arm.role == "candidate"]

    @property
    def slo_limits(self) -> dict[str, dict[str, float]]:
        """Limits per SLO class, by metric name, as the policy states them; empty where it states none."""
        stated = (self.run.manifest.policy or {}).get("slo") or {}
        return {
            name: {metric: float(limit) for metric, limit in limits.items() if limit is not None}
            for name, limits in stated.items()
        }


_ROLE_ORDER = {"baseline": 0, "aa": 1, "candidate": 2}


def times_of(requests: pa.Table, metric: str) -> np.ndarray:
    """A time of requests as the gate's percentiles count it: infinite where unanswered, without those that have none.

    Empty where no request at all has such a time: then nothing was measured, and no answer is no measurement either.
    """
    times = times_or_endless(metric, requests)
    return times[~np.isnan(times)] if np.isfinite(times).any() else np.empty(0)


def _of_arm(table: pa.Table, arm_id: str) -> pa.Table:
    return rows_where(table, "arm_id", arm_id)


def rows_where(table: pa.Table, name: str, value: str) -> pa.Table:
    """The rows whose text column `name` holds `value`."""
    return table.filter(pa.array(is_equal(table, name, value)))


def texts(table: pa.Table, name: str) -> list[str]:
    """A text column that is never null."""
    return [str(value) for value in table[name].to_pylist()]
