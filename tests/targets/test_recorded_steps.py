"""Whether an arm's decode steps are replayed as CUDA graphs: told by the arm, whichever way it is served, and shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.tiny_folder import save_tiny_folder
from tests.report.stored_run import build_run

from quantgate.report.run_view import RunView
from quantgate.report.sections.arms import RECORDED, arms_table
from quantgate.targets.bundled_engine import BundledEngineTarget
from quantgate.targets.openai.describe import describe
from quantgate.targets.openai.server_build import build_in
from quantgate.targets.openai.server_facts import ServerFacts
from quantgate_engine import LLM


@pytest.mark.parametrize("recorded", [24, 0, None])
def test_an_arm_tells_what_its_engine_records(
    recorded: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = LLM(save_tiny_folder(tmp_path), "fp32", num_kv_blocks=16)
    assert llm.info.recorded_steps is None
    told = replace(llm.info, recorded_steps=recorded)
    monkeypatch.setattr(LLM, "info", property(lambda _llm: told))
    assert BundledEngineTarget(llm, arm_id="fp32", role="baseline").description.recorded_steps == recorded


@pytest.mark.parametrize("recorded", [24, None])
def test_a_server_tells_it_of_its_own(recorded: int | None) -> None:
    facts = ServerFacts("model", build=build_in({"quantgate": {"recorded_steps": recorded}}))
    served = describe(
        facts, arm_id="served", role="candidate", url="http://localhost", scheme=None, capabilities=None, notes=()
    )
    assert served.recorded_steps == recorded


def test_the_report_has_a_row_for_it_where_an_arm_computes_on_a_gpu() -> None:
    run = build_run(requests=8, items=2)
    assert RECORDED not in [row[0] for row in arms_table(RunView(run, None)).rows]
    first, second, *others = run.manifest.arms
    arms = [first.model_copy(update={"recorded_steps": 24}), second.model_copy(update={"recorded_steps": 0}), *others]
    table = arms_table(RunView(replace(run, manifest=run.manifest.model_copy(update={"arms": arms})), None))
    [row] = [row for row in table.rows if row[0] == RECORDED]
    assert row[1:3] == ["24 shapes", "0 shapes"]
    assert set(row[3:]) == {"–"}
