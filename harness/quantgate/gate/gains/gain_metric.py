"""What a gain can be about, and how it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quantgate.gate.evidence import Pairing
from quantgate.stats.interval import Interval
from quantgate.store.manifest import ArmManifest


@dataclass(frozen=True, slots=True)
class GainQuestion:
    """One required gain, ready to be measured. `required` is a share of the baseline's value."""

    statistic: str
    slo_class: str | None
    required: float
    confidence: float
    resamples: int
    seed: int
    baseline_arm: ArmManifest
    candidate_arm: ArmManifest


@dataclass(frozen=True, slots=True)
class GainMeasurement:
    """The gain as a share of the baseline's value, positive when the candidate is better.

    estimate: None where there is no number; `shortfall` then says why. interval: stands without an estimate where the
    candidate's own value is infinite. `detail`: what else the reader should know, in sentences.
    """

    n: int
    method: str
    baseline: float | None = None
    candidate: float | None = None
    estimate: float | None = None
    interval: Interval | None = None
    shortfall: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class GainMetric:
    """A metric that a policy's gain can name; the first statistic is the default."""

    name: str
    title: str
    statistics: tuple[str, ...]
    value_unit: str
    by_class: bool
    measure: Callable[[Pairing, GainQuestion], GainMeasurement]
