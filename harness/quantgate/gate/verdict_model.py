"""`verdict.json`: what the gate says and why (schema `quantgate.verdict/1`)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

VERDICT_SCHEMA: Literal["quantgate.verdict/1"] = "quantgate.verdict/1"

Outcome = Literal["pass", "fail", "inconclusive", "uninformative"]
VerdictWord = Literal["ship", "do_not_ship", "not_enough_evidence", "invalid"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class RuleResult(_Strict):
    """One rule on one arm. The loss is positive when the candidate is worse; `interval` is its confidence interval.

    pass: upper limit below the margin; fail: lower limit above it; else inconclusive; uninformative where the
    baseline itself says nothing (at its floor, or its own noise exceeds the margin).
    """

    rule: str
    title: str
    outcome: Outcome
    metric: str
    unit: str
    baseline: float | None
    candidate: float | None
    estimate: float | None
    interval: tuple[float | None, float | None]
    margin: float
    n: int
    mde: float | None
    """The smallest loss that this sample would find with the policy's power."""
    n_needed: int | None
    """Items that would decide with the policy's power, if they behave as those seen; None where that cannot be told."""
    p_value: float | None = None
    holm_p_value: float | None = None
    method: str
    reason: str
    aa_estimate: float | None = None
    aa_interval: tuple[float | None, float | None] | None = None
    waived: str | None = None
    value_unit: str = ""
    """Unit of `baseline` and `candidate`; `unit` is the loss's (and the margin's, the interval's and the MDE's)."""
    counts: dict[str, int] = {}
    """Paired counts for binary outcomes: both_right, both_wrong, only_baseline_right, only_candidate_right."""


class GainResult(_Strict):
    """One thing that the candidate must bring; `estimate` is the relative gain (0.3 = 30 % less, or more)."""

    gain: str
    title: str
    metric: str
    outcome: Outcome
    baseline: float | None
    candidate: float | None
    estimate: float | None
    interval: tuple[float | None, float | None]
    required: float
    n: int
    method: str
    reason: str
    value_unit: str = ""


class ArmVerdict(_Strict):
    verdict: VerdictWord
    reasons: list[str]
    """The sentences that a reader needs first, most important first."""
    rules: list[RuleResult]
    gains: list[GainResult]
    gain_outcome: Outcome | None
    """None where the policy asks for no gain."""


class Verdict(_Strict):
    schema_: Literal["quantgate.verdict/1"] = Field(VERDICT_SCHEMA, alias="schema")
    verdict: VerdictWord
    exit_code: int
    run_id: str
    baseline: str
    policy: str
    policy_sha256: str
    confidence: float
    arms: dict[str, ArmVerdict]
    aa: list[RuleResult]
    """The rules applied to the baseline against itself: the run's own noise."""
    notes: list[str] = []
    inputs: dict[str, Any] = {}
