"""Rules about whether a request was served at all, and within the limits of its SLO class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from quantgate.gate.evidence import Pairing
from quantgate.gate.families.failure_kinds import failures_by_kind
from quantgate.gate.families.paired_binary import MARGIN_UNITS, measure_binary
from quantgate.gate.families.rule_metric import Measurement, RuleMetric, RuleQuestion
from quantgate.metrics.failed import FAILED
from quantgate.metrics.gave_up import gave_up
from quantgate.metrics.slo_attainment import slo_attainment


def _slo_attainment(pairing: Pairing, question: RuleQuestion) -> Measurement:
    """Right: finished within every limit of the class.

    Disconnects after tokens, as planned, count for neither arm; clients that gave up waiting found it not met.
    """
    pairs = pairing.of_class(question.slo_class)
    usable = np.logical_and(*(~np.isnan(FAILED(arm)) | gave_up(arm) for arm in (pairs.baseline, pairs.candidate)))
    met = [slo_attainment(requests, question.slo_limits)[usable] == 1 for requests in (pairs.baseline, pairs.candidate)]
    return measure_binary(met[0], met[1], pairs.clusters[usable], question)


def _failure_rate(pairing: Pairing, question: RuleQuestion) -> Measurement:
    """Right: neither failed, rejected nor aborted by the arm. Shown as failure rates.

    Every request counts for itself, also within one outage: a run of failures is the arm's own doing and no chance
    event that its neighbours share, so that a design effect would only excuse it.
    """
    pairs = pairing.of_class(question.slo_class)
    failed = FAILED(pairs.baseline), FAILED(pairs.candidate)
    usable = ~np.isnan(failed[0]) & ~np.isnan(failed[1])
    alone = np.arange(int(usable.sum()))
    measured = measure_binary(failed[0][usable] == 0, failed[1][usable] == 0, alone, question)
    return replace(
        measured,
        baseline=None if measured.baseline is None else 1 - measured.baseline,
        candidate=None if measured.candidate is None else 1 - measured.candidate,
        detail=" ".join(
            words
            for arm_id, requests in ((pairing.baseline_id, pairs.baseline), (pairing.candidate_id, pairs.candidate))
            if (words := failures_by_kind(arm_id, requests))
        ),
    )


SERVICE_RULES = (
    RuleMetric("slo_attainment", "SLO attainment", ("rate",), MARGIN_UNITS, "share", "requests", _slo_attainment),
    RuleMetric("failure_rate", "failure rate", ("rate",), MARGIN_UNITS, "share", "requests", _failure_rate),
)
