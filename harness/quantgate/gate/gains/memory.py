"""Gains in bytes: counted, not sampled, so that they are exact."""

from __future__ import annotations

from collections.abc import Callable

from quantgate.gate.evidence import Pairing
from quantgate.gate.gains.gain_metric import GainMeasurement, GainMetric, GainQuestion
from quantgate.stats.interval import Interval
from quantgate.store.manifest import ArmManifest

_METHOD = "exact"


def _gain(name: str, title: str, read: Callable[[ArmManifest], int | None]) -> GainMetric:
    def measure(_pairing: Pairing, question: GainQuestion) -> GainMeasurement:
        baseline, candidate = read(question.baseline_arm), read(question.candidate_arm)
        if not baseline or candidate is None:
            return GainMeasurement(n=0, method=_METHOD, shortfall="was not measured on both arms")
        share = 1 - candidate / baseline
        return GainMeasurement(1, _METHOD, float(baseline), float(candidate), share, Interval(share, share))

    return GainMetric(name, title, ("exact",), "bytes", by_class=False, measure=measure)


MEMORY_GAINS = (
    _gain("weight_bytes", "weight memory", lambda arm: arm.weight_bytes),
    _gain("linear_weight_bytes", "weight memory of the linear layers", lambda arm: arm.linear_weight_bytes),
    _gain("kv_bytes_per_token", "KV cache of a token", lambda arm: arm.kv_bytes_per_token),
    _gain("peak_memory_bytes", "peak memory", lambda arm: arm.peak_memory_bytes),
)
