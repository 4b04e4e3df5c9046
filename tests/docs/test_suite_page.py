"""docs/suites.md and docs/servers.md tell every field of a suite."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel
from tests.docs.pages import ROOT, read, section, table_rows, words_in_code

from quantgate.arm_life.settings import LaunchSettings, ReadyCheck, StopSettings
from quantgate.arms.config import BundledArmConfig
from quantgate.engine_settings.engine import EngineSettings
from quantgate.engine_settings.groups import (
    AdmissionGroup,
    BatchingGroup,
    CacheGroup,
    PreemptionGroup,
    TimeoutsGroup,
)
from quantgate.engine_settings.pools import PoolEntry, RouterGroup
from quantgate.quality.config import DistributionConfig, QualityConfig, TaskConfig
from quantgate.suite import Suite, WorkloadConfig, load_suite
from quantgate.targets.openai.settings import EndpointSettings
from quantgate.workload.transforms import WorkloadTransform

PAGE = read("docs/suites.md")
GROUPS: dict[str, type[BaseModel]] = {
    "batching": BatchingGroup,
    "admission": AdmissionGroup,
    "cache": CacheGroup,
    "preemption": PreemptionGroup,
    "timeouts": TimeoutsGroup,
    "pools": PoolEntry,
    "router": RouterGroup,
}
SERVERS = read("docs/servers.md")


def _named(page: str, heading: str) -> set[str]:
    """Names in the first cells of the tables under a heading."""
    return {name for row in table_rows(section(page, heading)) for name in words_in_code(row[0])}


def _fields(model: type[BaseModel], prefix: str = "") -> set[str]:
    return {prefix + (field.alias or name) for name, field in model.model_fields.items()}


@pytest.mark.parametrize(
    ("page", "heading", "fields"),
    [
        (PAGE, "## The file", _fields(Suite)),
        (PAGE, "## arms", _fields(BundledArmConfig)),
        (PAGE, "## engine", _fields(EngineSettings)),
        *((PAGE, "## engine", _fields(group, f"{name}.")) for name, group in GROUPS.items()),
        (PAGE, "## workload", _fields(WorkloadConfig)),
        (PAGE, "## quality", _fields(QualityConfig)),
        (PAGE, "## quality", _fields(DistributionConfig, "distribution.") | _fields(TaskConfig, "tasks.<name>.")),
        (SERVERS, "## The fields of a server", _fields(EndpointSettings)),
        (SERVERS, "## The fields of `launch`", _fields(LaunchSettings) - {"ready", "stop"}),
        (SERVERS, "## The fields of `launch`", _fields(ReadyCheck, "ready.") | _fields(StopSettings, "stop.")),
    ],
)
def test_every_field_is_described(page: str, heading: str, fields: set[str]) -> None:
    assert fields <= _named(page, heading)


def test_every_transform_stands_with_its_settings() -> None:
    rows = {words_in_code(row[0])[0]: words_in_code(row[1]) for row in table_rows(section(PAGE, "## workload"))}
    for transform in get_args(get_args(WorkloadTransform)[0]):
        settings = {name for name in transform.model_fields if name != "kind"}
        assert set(rows[transform.model_fields["kind"].default]) == settings


def test_the_tasks_are_those_that_travel_with_quantgate() -> None:
    sentence = next(line for line in PAGE.splitlines() if line.startswith("The tasks are"))
    assert set(words_in_code(sentence)) >= {path.stem for path in (ROOT / "suites" / "tasks").glob("*.yaml")}


def test_the_example_is_a_suite(tmp_path: Path) -> None:
    example = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    file = tmp_path / "example.yaml"
    file.write_text(example[1], encoding="utf-8")
    assert load_suite(file).suite.name == "mine"


def test_the_engines_defaults_are_told_as_they_are() -> None:
    defaults = EngineSettings().model_dump(mode="json")
    told = {row[0]: row[2] for row in table_rows(section(PAGE, "## engine"))}
    for names, cell in told.items():
        group, _, field = words_in_code(names)[0].rpartition(".")
        if group != "pools" and re.fullmatch(r"[\d.]+|true|false|`[a-z-]+`", cell):
            assert yaml.safe_load(cell.strip("`")) == (defaults[group] if group else defaults)[field], names
