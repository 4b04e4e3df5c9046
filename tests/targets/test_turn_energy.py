"""Energy of an output token, over an arm's turns, and where it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.tiny_folder import save_tiny_folder
from tests.report.stored_run import build_run

from quantgate.report.run_view import RunView
from quantgate.report.sections.arms import ENERGY, arms_table
from quantgate.targets.bundled_engine import BundledEngineTarget
from quantgate.targets.turn_energy import TurnEnergy
from quantgate.workload.plan import PlannedRequest
from quantgate_engine import LLM


def energy(readings: Sequence[float | None], tokens: Sequence[int]) -> TurnEnergy:
    """readings: before and after each turn; tokens: of each turn."""
    told = iter(readings)
    measured = TurnEnergy(lambda: next(told))
    for count in tokens:
        measured.count(1_000)
        measured.begin_turn()
        measured.count(count)
        measured.end_turn()
    return measured


def test_what_other_arms_take_between_the_turns_does_not_count() -> None:
    assert energy([100, 130, 500, 520], [20, 5]).joules_per_token == pytest.approx(50 / 25)


@pytest.mark.parametrize("readings", [[None, None, 500, 520], [100, 130, 500, None]])
def test_a_turn_that_is_not_known_makes_the_whole_unknown(readings: list[float | None]) -> None:
    assert energy(readings, [20, 5]).joules_per_token is None


def test_without_tokens_there_is_no_energy_of_one() -> None:
    assert energy([100, 130], [0]).joules_per_token is None
    assert energy([], []).joules_per_token is None


def test_an_arm_tells_the_energy_of_the_tokens_of_its_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = LLM(save_tiny_folder(tmp_path), "fp32", num_kv_blocks=16)
    readings = iter([10.0, 40.0])
    monkeypatch.setattr(llm, "device_joules", lambda: next(readings))
    target = BundledEngineTarget(llm, arm_id="fp32", role="baseline")

    async def one_turn() -> None:
        await target.start()
        async with target.turn():
            async for _ in target.submit(PlannedRequest("r", 0, (5, 6, 7), 12, ignore_eos=True)):
                pass
        await target.stop()

    asyncio.run(asyncio.wait_for(one_turn(), 60))
    assert target.description.joules_per_token == pytest.approx(30 / 12)


def test_a_cpu_tells_no_energy(tmp_path: Path) -> None:
    assert LLM(save_tiny_folder(tmp_path), "fp32", num_kv_blocks=16).device_joules() is None


def test_the_report_has_a_row_for_it_where_an_arm_tells() -> None:
    run = build_run(requests=8, items=2)
    assert ENERGY not in [row[0] for row in arms_table(RunView(run, None)).rows]
    first, *others = run.manifest.arms
    arms = [first.model_copy(update={"joules_per_token": 0.1234}), *others]
    table = arms_table(RunView(replace(run, manifest=run.manifest.model_copy(update={"arms": arms})), None))
    [row] = [row for row in table.rows if row[0] == ENERGY]
    assert row[1] == "0.123 J"
    assert set(row[2:]) == {"–"}
