"""Two runs of the same plan, compared request by request with intervals. It informs; it is no verdict."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate.comparison.arm_choice import ArmPair, paired_arms
from quantgate.comparison.differences import differences, same_items, same_slo
from quantgate.comparison.merged_run import ArmOfRun, pair_across_runs
from quantgate.comparison.own_noise import own_noise, own_pairs
from quantgate.gate.evidence import Pairing
from quantgate.gate.families.registry import RULE_METRICS
from quantgate.gate.families.rule_metric import Measurement, RuleQuestion
from quantgate.gate.reasons import rule_title
from quantgate.stats.interval import Interval
from quantgate.store.run_folder import LoadedRun
from quantgate_engine.errors import ConfigurationError

CONFIDENCE = 0.95
_RESAMPLES = 4000

_ALWAYS = (
    ("ttft_ms", "p50"), ("ttft_ms", "p95"), ("ttft_ms", "p99"), ("tpot_ms", "p50"), ("tpot_ms", "p95"),
    ("longest_gap_ms", "p95"), ("e2e_ms", "p50"), ("e2e_ms", "p95"), ("failure_rate", "rate"),
)  # fmt: skip
_WITH_NATURAL_LENGTHS = (("output_length_change", "mean"),)
_WITH_THE_SAME_SLO = (("slo_attainment", "rate"),)
_WITH_THE_SAME_ITEMS = (("correct", "rate"), ("gold_preferred", "rate"), ("gold_logprob", "mean"))


@dataclass(frozen=True, slots=True)
class PairedFigure:
    """One metric on both arms.

    estimate: loss in `unit`, positive where the second arm is worse; None with a reason. noise: the largest loss, in
    either direction, that the runs' baselines may show against themselves; None where no run measured it.
    """

    metric: str
    statistic: str
    title: str
    unit: str
    value_unit: str
    n: int
    method: str
    baseline: float | None
    candidate: float | None
    estimate: float | None
    interval: Interval | None
    noise: float | None
    reason: str | None

    @property
    def reading(self) -> str:
        """What the interval shows, in words."""
        if self.interval is None:
            return self.reason or "not measured"
        if self.interval.lower <= 0 <= self.interval.upper:
            return "no difference shown"
        nearest = min(map(abs, self.interval))
        if self.noise is not None and nearest <= self.noise:
            return "within the runs' own noise"
        return "worse" if self.interval.lower > 0 else "better"


@dataclass(frozen=True, slots=True)
class PairedComparison:
    baseline: str
    candidate: str
    requests: int
    unpaired: int
    figures: list[PairedFigure]
    notes: list[str]


def same_plan(first: LoadedRun, other: LoadedRun) -> bool:
    """Whether both runs replayed the same requests, on the same schedule or by as many clients."""
    own, others = first.manifest.workload, other.manifest.workload
    return own is not None and others is not None and (own.plan_sha256, own.load) == (others.plan_sha256, others.load)


def compare_runs(first: LoadedRun, other: LoadedRun, asked: ArmPair | None, *, seed: int) -> list[PairedComparison]:
    """One comparison per pair of arms, the first run's arm as the baseline.

    Raises ConfigurationError for the same run twice, or an arm that is not there.
    """
    if first.manifest.run_id == other.manifest.run_id:
        raise ConfigurationError(f"Run {first.manifest.run_id} is given twice; name two different runs.")
    noise = own_pairs((first, other))
    return [
        _compare(ArmOfRun(first, own), ArmOfRun(other, others), noise, seed)
        for own, others in paired_arms(first, other, asked)
    ]


def _compare(baseline: ArmOfRun, candidate: ArmOfRun, noise: list[Pairing], seed: int) -> PairedComparison:
    pairing = pair_across_runs(baseline, candidate)
    slo = same_slo(baseline, candidate)
    wanted = [
        *_ALWAYS,
        *(_WITH_NATURAL_LENGTHS if pairing.output_lengths == "natural" else ()),
        *(_WITH_THE_SAME_SLO if slo else ()),
        *(_WITH_THE_SAME_ITEMS if same_items(baseline, candidate) else ()),
    ]
    figures = [_figure(pairing, noise, metric, statistic, slo, seed) for metric, statistic in wanted]
    return PairedComparison(
        baseline=baseline.name,
        candidate=candidate.name,
        requests=pairing.baseline.num_rows,
        unpaired=pairing.unpaired,
        figures=[figure for figure in figures if figure.n],
        notes=differences(baseline, candidate),
    )


def _figure(
    pairing: Pairing, noise: list[Pairing], name: str, statistic: str, slo: dict[str, dict[str, float]], seed: int
) -> PairedFigure:
    metric = RULE_METRICS[name]
    unit = next(iter(metric.margin_units.values()))
    question = RuleQuestion(
        statistic=statistic, loss_unit=unit, margin=0.0, confidence=CONFIDENCE, resamples=_RESAMPLES, seed=seed,
        slo_limits=slo,
    )  # fmt: skip
    measured = metric.measure(pairing, question)
    estimate = measured.estimate if measured.uninformative is None else None
    return PairedFigure(
        metric=name,
        statistic=statistic,
        title=rule_title(metric, statistic, None, None),
        unit=unit,
        value_unit=metric.value_unit,
        n=measured.n,
        method=measured.method,
        baseline=measured.baseline,
        candidate=measured.candidate,
        estimate=estimate.value if estimate else None,
        interval=estimate.interval if estimate else None,
        noise=own_noise(noise, lambda own: metric.measure(own, question)) if estimate else None,
        reason=_why_not(measured),
    )


def _why_not(measured: Measurement) -> str | None:
    if measured.uninformative is not None or measured.unmeasured is not None:
        return measured.uninformative or measured.unmeasured
    if measured.estimate is None:
        return f"{measured.n} are too few, {measured.minimum_n} are needed" if measured.minimum_n else "not measured"
    return None
