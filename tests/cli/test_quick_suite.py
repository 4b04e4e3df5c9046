"""The quick suite as a whole: every timing of the main job counts on exactly this work."""

from __future__ import annotations

import hashlib
import json

import pytest
from transformers import AutoTokenizer

from quantgate.quality.task_files import items_sha256
from quantgate.resources import find_policy, find_suite, tasks_folder
from quantgate.run.workload_phase import plan_workload, read_traffic
from quantgate.suite import LoadedSuite, load_suite
from quantgate_engine.model.catalog import resolve_model

SUITE_WORK_SHA256 = "b5d3ab1e8d0fee44274382f35656ef5aa15712b8a296462a000b3a0eca20549e"


@pytest.fixture(scope="module")
def quick() -> LoadedSuite:
    return load_suite(find_suite("quick"))


@pytest.mark.model
def test_the_work_is_the_one_that_all_timings_refer_to(quick: LoadedSuite) -> None:
    """Requests, prompt tokens, schedule, output lengths, blocks; task items and how many; compared sequences; arms."""
    tokenizer = AutoTokenizer.from_pretrained(resolve_model(quick.suite.model).path)
    traffic = read_traffic(quick.trace_path, quick.suite.workload, tokenizer, quick.suite.seed)
    plan = plan_workload(traffic, quick.suite.workload, tokenizer, quick.suite.seed, 1024)
    assert len(plan.requests) >= 400
    assert plan.prompt_tokens >= 40_000
    assert plan.output_tokens >= 8_000

    assert quick.suite.quality is not None
    work = {
        "plan": plan.sha256(),
        "passes": quick.suite.workload.passes,
        "items": items_sha256(quick.suite.quality.load_tasks(tasks_folder(quick.path))),
        "quality": quick.suite.quality.model_dump(mode="json"),
        "arms": [arm.scheme for arm in quick.suite.arms],
        "aa": quick.suite.aa,
    }
    assert hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest() == SUITE_WORK_SHA256


def test_every_bundled_suite_names_a_bundled_policy_and_bundled_tasks() -> None:
    for path in sorted(find_suite("quick").parent.glob("*.yaml")):
        loaded = load_suite(path)
        assert find_policy(loaded.suite.policy, beside=path.parent).is_file()
        assert loaded.suite.quality is not None
        assert loaded.suite.quality.load_tasks(tasks_folder(path))
