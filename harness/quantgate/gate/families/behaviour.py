"""Rules about habits of the generated answers: refusals, loops, broken JSON."""

from __future__ import annotations

from dataclasses import replace

from quantgate.gate.evidence import Pairing
from quantgate.gate.families.lost_items import lost_items
from quantgate.gate.families.paired_binary import MARGIN_UNITS, METHOD, measure_binary
from quantgate.gate.families.rule_metric import Measurement, RuleMetric, RuleQuestion


def _rate(name: str, title: str, metric: str, right_when: bool) -> RuleMetric:
    """A habit that is right when it shows (`right_when`) or when it does not; the arms' values are its rates."""

    def measure(pairing: Pairing, question: RuleQuestion) -> Measurement:
        pairs = pairing.quality("behaviour", metric, question.task)
        shown = pairs.baseline >= 0.5, pairs.candidate >= 0.5
        measured = measure_binary(shown[0] == right_when, shown[1] == right_when, pairs.clusters, question)
        if measured.n == 0:
            return replace(measured, unmeasured=pairing.why_unmeasured("answers"))
        means = float(shown[0].mean()), float(shown[1].mean())
        detail = lost_items(pairing, pairs, "do not count")
        return replace(measured, baseline=means[0], candidate=means[1], detail=detail)

    return RuleMetric(name, title, ("rate",), MARGIN_UNITS, "share", "items", measure)


def _refusal_change(pairing: Pairing, question: RuleQuestion) -> Measurement:
    """Refusing more turns users away, refusing less may be unsafe: a change in either direction is a loss."""
    pairs = pairing.quality("behaviour", "refused", question.task)
    if len(pairs.baseline) == 0:
        return Measurement(n=0, method=METHOD, unmeasured=pairing.why_unmeasured("answers"))
    refused = pairs.baseline >= 0.5, pairs.candidate >= 0.5
    measured = measure_binary(refused[0], refused[1], pairs.clusters, question, either_way=True)
    return replace(measured, detail=lost_items(pairing, pairs, "do not count"))


BEHAVIOUR_RULES = (
    RuleMetric("refusal_change", "refusal rate change", ("rate",), MARGIN_UNITS, "share", "items", _refusal_change),
    _rate("loop_rate", "answers caught in a loop", "looped", right_when=False),
    _rate("json_parse_rate", "JSON answers that parse", "json_parsed", right_when=True),
)
