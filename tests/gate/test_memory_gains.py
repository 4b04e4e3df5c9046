"""Gains in bytes are counted on the arms' manifests."""

from __future__ import annotations

import pytest
from tests.report.stored_run import build_manifest

from quantgate.gate.gains.gain_metric import GainQuestion
from quantgate.gate.gains.registry import GAIN_METRICS

ARM = build_manifest(requests=4).arms[0]


def _estimate(baseline: int | None, candidate: int | None) -> float | None:
    question = GainQuestion(
        statistic="exact", slo_class=None, required=0.4, confidence=0.95, resamples=1, seed=0,
        baseline_arm=ARM.model_copy(update={"kv_bytes_per_token": baseline}),
        candidate_arm=ARM.model_copy(update={"kv_bytes_per_token": candidate}),
    )  # fmt: skip
    return GAIN_METRICS["kv_bytes_per_token"].measure(None, question).estimate  # type: ignore[arg-type]  # counts alone


@pytest.mark.parametrize(
    ("baseline", "candidate", "share"),
    [(23_040, 12_240, 0.46875), (100, 100, 0.0), (None, 100, None), (100, None, None)],
)
def test_a_smaller_kv_cache_is_a_gain(baseline: int | None, candidate: int | None, share: float | None) -> None:
    assert _estimate(baseline, candidate) == (None if share is None else pytest.approx(share))
