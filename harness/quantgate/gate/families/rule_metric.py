"""What a rule can be about: a name, the statistics and margins that fit it, and how its loss is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quantgate.gate.evidence import Pairing
from quantgate.stats.interval import LossEstimate
from quantgate.stats.sample_size import ChanceWithN


@dataclass(frozen=True, slots=True)
class RuleQuestion:
    """One rule, ready to be measured. `margin` is in `loss_unit`."""

    statistic: str
    loss_unit: str
    margin: float
    confidence: float
    resamples: int
    seed: int
    slo_class: str | None = None
    task: str | None = None
    slo_limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What the data say about one rule.

    baseline, candidate: the arms' own statistics in the metric's unit. estimate: None where there is no number;
    then `minimum_n` (too few items), `uninformative` (what was measured cannot show a loss) or `unmeasured` (an arm did
    not give it) tells why, the last two in words. `chance` tells how likely more items would decide; `detectable`
    the smallest loss that this sample finds with a given power, where the standard error does not tell it; `detail`
    what else the reader should know, in sentences.
    """

    n: int
    method: str
    baseline: float | None = None
    candidate: float | None = None
    estimate: LossEstimate | None = None
    chance: ChanceWithN | None = None
    detectable: Callable[[float], float] | None = None
    minimum_n: int | None = None
    uninformative: str | None = None
    unmeasured: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RuleMetric:
    """A metric that rules can name.

    statistics: the first is the default. margin_units: suffix of a margin in the policy -> unit of the loss, with ""
    for a plain number. items: what n counts. value_unit: unit of the arms' own values.
    """

    name: str
    title: str
    statistics: tuple[str, ...]
    margin_units: Mapping[str, str]
    value_unit: str
    items: str
    measure: Callable[[Pairing, RuleQuestion], Measurement]
