"""docs/policies.md and the policy model say the same: every metric, field and unit of one stands in the other."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import get_args

import yaml
from tests.docs.pages import read, section, table_rows, words_in_code

from quantgate.gate.families.registry import RULE_METRICS
from quantgate.gate.gains.registry import GAIN_METRICS
from quantgate.gate.policy import AaDemand, Gain, GainRule, MatchField, Policy, Rule, SloClass, Waiver, load_policy

PAGE = read("docs/policies.md")


def _rows(heading: str) -> dict[str, list[str]]:
    """First cell's names -> the row; several names may share one."""
    return {name: row for row in table_rows(section(PAGE, heading)) for name in words_in_code(row[0])}


def test_every_field_is_described() -> None:
    headings = {
        "## The file": Policy,
        "## slo": SloClass,
        "## rules": Rule,
        "## gain": GainRule,
        "## waivers": Waiver,
    }
    for heading, model in headings.items():
        fields = {field.alias or name for name, field in model.model_fields.items()}
        assert fields <= set(_rows(heading)), heading
    assert set(Gain.model_fields) | set(AaDemand.model_fields) <= set(words_in_code(PAGE)) | {"required"}


def test_every_rule_metric_stands_with_its_statistics_margins_and_items() -> None:
    rows = _rows("### Metrics of rules")
    assert rows.keys() == RULE_METRICS.keys()
    for name, metric in RULE_METRICS.items():
        _, statistics, margins, items, _ = rows[name]
        assert tuple(words_in_code(statistics)) == metric.statistics, name
        assert {unit for unit in metric.margin_units if unit} == set(words_in_code(margins)), name
        assert ("number" in margins) == ("" in metric.margin_units), name
        assert items == metric.items, name


def test_every_gain_metric_stands_with_its_statistics() -> None:
    rows = _rows("## gain")
    assert set(GAIN_METRICS) <= rows.keys()
    for name, metric in GAIN_METRICS.items():
        assert tuple(words_in_code(rows[name][1])) == metric.statistics, name
        assert ("class" in rows[name][2]) == metric.by_class, name


def test_every_property_that_may_have_to_match_is_named() -> None:
    assert _rows("## must_match").keys() == set(get_args(MatchField))


def test_defaults_and_bounds_are_those_of_the_model() -> None:
    rows = _rows("## The file")
    for name in ("confidence", "power", "resamples"):
        assert words_in_code(rows[name][2]) == [str(Policy.model_fields[name].default)]


def test_the_example_is_a_policy(tmp_path: Path) -> None:
    example = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    file = tmp_path / "example.yaml"
    file.write_text(example[1], encoding="utf-8")
    policy = load_policy(file)
    assert {*yaml.safe_load(example[1])} == {field.alias or name for name, field in Policy.model_fields.items()}
    assert policy.waivers[0].expires > date(2026, 1, 1)
