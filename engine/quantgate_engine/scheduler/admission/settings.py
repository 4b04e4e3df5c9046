"""Settings of admission: who may start, and what becomes of who may not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from quantgate_engine.setting_checks import require, require_at_least, require_name, require_number, require_seconds

EstimatorName = Literal["guaranteed", "past-future", "optimistic"]
OverCapName = Literal["reject", "queue", "degrade"]


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """Who may start.

    estimator: what a request is taken to need. `guaranteed`: its whole sequence, so that nothing is ever preempted;
    `past-future`: what the lengths of past answers let expect of the peak; `optimistic`: what it needs to start.
    over_cap: what becomes of a request above a cap. `reject`: it ends at once; `queue`: it waits; `degrade`: its output
    is shortened, or the oldest turns of its context are left out, and where that does not help it waits.
    max_kv_tokens: KV tokens that all requests together may hold or be promised; None: as many as the pool has.
    max_wait_s: seconds that a request may wait for its first step before it is rejected; None: for ever.
    min_output_tokens: `degrade` leaves a request at least so many output tokens.
    watermark: share of the pool's blocks that stays free when a request is let in, for those that run to grow into.
    past_answers: how many of the last answers `past-future` goes by.
    past_quantile: which quantile of those it expects of an answer (1: the longest).
    """

    estimator: EstimatorName = "guaranteed"
    over_cap: OverCapName = "queue"
    max_kv_tokens: int | None = None
    max_wait_s: float | None = None
    min_output_tokens: int = 16
    watermark: float = 0.0
    past_answers: int = 512
    past_quantile: float = 0.8

    def __post_init__(self) -> None:
        require_name("AdmissionSettings.estimator", self.estimator, get_args(EstimatorName))
        require_name("AdmissionSettings.over_cap", self.over_cap, get_args(OverCapName))
        require_at_least("AdmissionSettings.max_kv_tokens", self.max_kv_tokens, 1, optional=True)
        require_seconds("AdmissionSettings.max_wait_s", self.max_wait_s, optional=True, may_be_zero=True)
        require_at_least("AdmissionSettings.min_output_tokens", self.min_output_tokens, 1)
        require_number("AdmissionSettings.watermark", self.watermark)
        require(0 <= self.watermark < 1, "AdmissionSettings.watermark", self.watermark, "0 to below 1")
        require_at_least("AdmissionSettings.past_answers", self.past_answers, 1)
        require_number("AdmissionSettings.past_quantile", self.past_quantile)
        require(
            0 < self.past_quantile <= 1, "AdmissionSettings.past_quantile", self.past_quantile, "above 0 and at most 1"
        )
