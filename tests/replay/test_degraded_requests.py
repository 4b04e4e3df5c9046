"""A request that admission cut says so in its row, at its arm and in the report."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.replay.plans import plan_of, planned
from tests.replay.request_rows import request_row, request_table

from quantgate.replay.arms import ReplayArm
from quantgate.replay.degraded import degraded_notes
from quantgate.replay.replay_log import ReplayLog
from quantgate.replay.run_replay import ReplayOptions, run_replay
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.store.schemas import ADDED_COLUMNS
from quantgate.store.table_file import read_table
from quantgate.targets.simulated import SimulatedTarget
from quantgate_engine.clock import VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.scheduler.admission.settings import AdmissionSettings, OverCapName


def replayed(over_cap: OverCapName) -> pa.Table:
    log = ReplayLog()

    async def main(clock: VirtualClock) -> None:
        admission = AdmissionSettings(over_cap=over_cap, max_kv_tokens=16, min_output_tokens=2)
        target = SimulatedTarget(clock, config=EngineConfig(block_size=4, admission=admission))
        plan = plan_of(planned("fits", output_tokens=5), planned("cut", at_ms=500, output_tokens=50))
        arms = [ReplayArm("arm", "baseline", target)]
        await run_replay(plan, arms, log, clock=clock, origin_ns=0, options=ReplayOptions(warmup_requests=0))

    run_in_virtual_time(main)
    return log.requests()


def test_a_shortened_answer_is_told_in_its_row_and_at_its_arm() -> None:
    requests = replayed("degrade")
    assert requests["status"].to_pylist() == ["finished", "finished"]
    assert requests["requested_output_tokens"].to_pylist() == [5, 50]
    assert requests["output_tokens"].to_pylist() == [5, 13]
    assert requests["degraded"].to_pylist() == [None, "max_tokens was cut from 50 to 13"]
    assert degraded_notes(requests) == {
        "arm": "1 of 2 requests was cut by admission (over_cap: degrade) and not served as planned; the first, cut: "
        "max_tokens was cut from 50 to 13"
    }


def test_nothing_is_noted_where_nothing_was_cut() -> None:
    requests = replayed("queue")
    assert requests["status"].to_pylist() == ["finished", "rejected"]
    assert degraded_notes(requests) == {}


@pytest.mark.parametrize("first_missing", range(len(ADDED_COLUMNS["requests"])))
def test_a_file_from_before_the_last_columns_has_them_empty(tmp_path: Path, first_missing: int) -> None:
    table = request_table(request_row("a"), request_row("b"))
    path = tmp_path / "requests.parquet"
    pq.write_table(table.drop_columns(list(ADDED_COLUMNS["requests"][first_missing:])), path)
    assert read_table(path, "requests").equals(table)
