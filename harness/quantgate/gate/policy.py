"""A policy: what a candidate may lose, what it must bring, and with which certainty (schema `quantgate.policy/1`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from quantgate.gate.families.registry import RULE_METRICS
from quantgate.gate.gains.registry import GAIN_METRICS
from quantgate.gate.margin import Margin, parse_margin
from quantgate.validation import first_problem, load_yaml_model
from quantgate_engine.errors import ConfigurationError

MatchField = Literal[
    "target", "model", "tokenizer_fingerprint", "kv_dtype", "compute_dtype", "head_dtype", "kernel_set"
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)


class SloClass(_Strict):
    """Highest allowed times of one SLO class, in milliseconds."""

    ttft_ms: float | None = Field(None, gt=0)
    tpot_ms: float | None = Field(None, gt=0)
    e2e_ms: float | None = Field(None, gt=0)
    time_to_first_answer_ms: float | None = Field(None, gt=0)
    longest_gap_ms: float | None = Field(None, gt=0)
    """A longer gap between two tokens is a stall."""

    def limits(self) -> dict[str, float]:
        return {name: limit for name, limit in self.model_dump().items() if limit is not None}


def _known(name: str, metrics: dict[str, Any], kind: str) -> str:
    if name not in metrics:
        raise ValueError(f"there is no {kind} metric called {name!r}; expected one of: {', '.join(metrics)}")
    return name


def _fits(statistic: str | None, allowed: tuple[str, ...], metric: str) -> str:
    if statistic is not None and statistic not in allowed:
        raise ValueError(f"{metric} has no statistic {statistic!r}; expected one of: {', '.join(allowed)}")
    return statistic or allowed[0]


class Rule(_Strict):
    """A loss that must stay within a margin. A rule that is not `required` may stay undecided; it may not fail."""

    metric: str
    margin: str | float
    statistic: Literal["p50", "p95", "p99", "mean", "rate"] | None = None
    """The metric's own default where none is given."""
    id: str | None = Field(None, min_length=1)
    slo_class: str | None = None
    task: str | None = None
    required: bool = True

    @field_validator("metric")
    @classmethod
    def _metric_is_known(cls, metric: str) -> str:
        return _known(metric, RULE_METRICS, "rule")

    @model_validator(mode="after")
    def _parts_fit(self) -> Rule:
        _fits(self.statistic, RULE_METRICS[self.metric].statistics, self.metric)
        try:
            _ = self.loss_margin
        except ValueError as error:
            raise ValueError(f"margin of {self.metric}: {error}") from None
        if self.slo_class is not None and RULE_METRICS[self.metric].items != "requests":
            raise ValueError(f"{self.metric} is not measured on requests and takes no slo_class; remove it")
        if self.task is not None and RULE_METRICS[self.metric].items != "items":
            raise ValueError(f"{self.metric} is not measured on tasks and takes no task; remove it")
        return self

    @property
    def loss_margin(self) -> Margin:
        return parse_margin(self.margin, RULE_METRICS[self.metric].margin_units)

    @property
    def chosen_statistic(self) -> str:
        return self.statistic or RULE_METRICS[self.metric].statistics[0]

    @property
    def name(self) -> str:
        """The rule's id, or one made of its parts, such as `ttft_ms-p95-interactive`."""
        parts = (self.metric, self.chosen_statistic, self.slo_class, self.task)
        return self.id or "-".join(part for part in parts if part)


class GainRule(_Strict):
    """Something that the candidate must bring: `at_least` as a share of the baseline's value."""

    metric: str
    at_least: str
    statistic: Literal["p50", "p95", "p99", "mean", "exact"] | None = None
    slo_class: str | None = None

    @field_validator("metric")
    @classmethod
    def _metric_is_known(cls, metric: str) -> str:
        return _known(metric, GAIN_METRICS, "gain")

    @field_validator("at_least")
    @classmethod
    def _is_a_share(cls, at_least: str) -> str:
        if parse_margin(at_least, {"%": "ratio"}).value >= 1:
            raise ValueError(f"expected a share below 100%, got {at_least!r}; nothing can shrink by more than itself")
        return at_least

    @model_validator(mode="after")
    def _parts_fit(self) -> GainRule:
        _fits(self.statistic, GAIN_METRICS[self.metric].statistics, self.metric)
        if self.slo_class is not None and not GAIN_METRICS[self.metric].by_class:
            raise ValueError(f"{self.metric} is not measured on requests and takes no slo_class; remove it")
        return self

    @property
    def required_share(self) -> float:
        return parse_margin(self.at_least, {"%": "ratio"}).value

    @property
    def chosen_statistic(self) -> str:
        return self.statistic or GAIN_METRICS[self.metric].statistics[0]

    @property
    def name(self) -> str:
        return "-".join(part for part in (self.metric, self.chosen_statistic, self.slo_class) if part)


class Gain(_Strict):
    """What the candidate must bring: one of the list (`any`), or the whole list (`all`)."""

    any: list[GainRule] | None = Field(None, min_length=1)
    all: list[GainRule] | None = Field(None, min_length=1)

    @model_validator(mode="after")
    def _one_list(self) -> Gain:
        if (self.any is None) == (self.all is None):
            raise ValueError("expected exactly one of the keys any and all; write `gain: null` to ask for no gain")
        return self

    @property
    def rules(self) -> list[GainRule]:
        return self.any or self.all or []


class AaDemand(_Strict):
    """Whether a run must measure its own noise (the baseline against itself) before anything may ship."""

    required: bool = True


class Waiver(_Strict):
    """Sets one rule aside for one arm until a date, with a reason that stands in the verdict."""

    rule: str
    arm: str
    reason: str = Field(min_length=1)
    expires: date


class Policy(_Strict):
    schema_: Literal["quantgate.policy/1"] = Field(alias="schema")
    name: str = Field(min_length=1)
    description: str = ""
    confidence: float = Field(0.95, ge=0.5, lt=1)
    power: float = Field(0.8, ge=0.5, lt=1)
    resamples: int = Field(4000, ge=1000, le=100_000)
    slo: dict[str, SloClass] = {}
    rules: list[Rule] = Field(min_length=1)
    gain: Gain | None
    aa: AaDemand = AaDemand()
    waivers: list[Waiver] = []
    must_match: list[MatchField] = []

    @field_validator("rules")
    @classmethod
    def _names_are_distinct(cls, rules: list[Rule]) -> list[Rule]:
        names = [rule.name for rule in rules]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two rules are called {name!r}; give each its own id")
        return rules

    @field_validator("rules")
    @classmethod
    def _attainment_has_limits(cls, rules: list[Rule], info: ValidationInfo) -> list[Rule]:
        if not info.data.get("slo", True) and any(rule.metric == "slo_attainment" for rule in rules):
            raise ValueError("slo_attainment needs limits; add them under slo, one entry a class")
        return rules

    @field_validator("waivers")
    @classmethod
    def _waivers_name_rules(cls, waivers: list[Waiver], info: ValidationInfo) -> list[Waiver]:
        names = [rule.name for rule in info.data.get("rules", [])]
        for waiver in waivers:
            if names and waiver.rule not in names:
                raise ValueError(f"a waiver names the rule {waiver.rule!r}; expected one of: {', '.join(names)}")
        return waivers

    @property
    def slo_limits(self) -> dict[str, dict[str, float]]:
        return {name: limits.limits() for name, limits in self.slo.items()}

    def allowing(self, properties: Iterable[str]) -> Policy:
        """The policy without these properties in `must_match`. Raises ConfigurationError where it wants none such."""
        allowed = set(properties)
        for name in sorted(allowed.difference(self.must_match)):
            wanted = ", ".join(self.must_match) or "nothing"
            raise ConfigurationError(f"Policy {self.name} does not want {name!r} equal; it wants: {wanted}.")
        return self.model_copy(update={"must_match": [name for name in self.must_match if name not in allowed]})

    def sha256(self) -> str:
        """Hash of what the policy says, whatever its layout and comments."""
        return hashlib.sha256(self.model_dump_json(by_alias=True).encode()).hexdigest()


def load_policy(path: Path) -> Policy:
    """Raises ConfigurationError with file, line and field."""
    return load_yaml_model(path, Policy)


def policy_json_schema() -> dict[str, Any]:
    """JSON schema of a policy file, for editors and other programs."""
    return Policy.model_json_schema(by_alias=True)


def stored_policy(document: dict[str, Any], name: str) -> Policy:
    """A policy as a manifest keeps it. Raises ConfigurationError where this version cannot read it; `name` names it."""
    try:
        return Policy.model_validate_json(json.dumps(document))
    except ValidationError as error:
        raise ConfigurationError(first_problem(error, document, Policy).sentence(name)) from None
