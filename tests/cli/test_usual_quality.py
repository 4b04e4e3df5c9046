"""How many task items a run without a suite takes, and from which tasks."""

from __future__ import annotations

import pytest
import yaml

from quantgate.resources import bundled_root
from quantgate.run.server_suite import ServerArms, server_suite
from quantgate.run.usual_quality import USUAL_ITEMS, usual_quality
from quantgate.suite import WorkloadConfig


def test_the_usual_items_are_those_of_the_suite_quick() -> None:
    quick = yaml.safe_load((bundled_root() / "suites" / "quick.yaml").read_text())["quality"]
    assert usual_quality().model_dump() == quick
    assert USUAL_ITEMS == 70


@pytest.mark.parametrize("items", [1, 3, 7, 35, 69, 100, 200])
def test_fewer_items_are_shared_in_proportion(items: int) -> None:
    limits = {name: task.limit or 0 for name, task in usual_quality(items).tasks.items()}
    assert sum(limits.values()) == items
    for name, task in usual_quality().tasks.items():
        assert abs(limits.get(name, 0) - (task.limit or 0) * items / USUAL_ITEMS) < 1


def test_no_item_leaves_the_tasks_out() -> None:
    servers = ServerArms(baseline="http://a", candidates=["http://b"])
    loaded = server_suite(servers, WorkloadConfig(trace="x.jsonl"), "chat", seed=0, quality_items=0)
    assert loaded.suite.quality is not None
    assert loaded.suite.quality.tasks == {}
    assert loaded.suite.quality.distribution is not None
