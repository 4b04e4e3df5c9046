"""The settings that the engine ran with stand in the report, one column for each of its pools."""

from __future__ import annotations

from dataclasses import replace

from tests.report.page_reader import read_page
from tests.report.stored_run import build_run

from quantgate.engine_settings.engine import EngineSettings
from quantgate.report.figures import Table
from quantgate.report.render import render_report
from quantgate.report.run_view import RunView
from quantgate.report.sections.engine_settings import engine_settings_table
from quantgate.store.run_folder import LoadedRun

RUN = build_run(requests=8, items=2)
POOLS = EngineSettings.model_validate(
    {
        "cache": {"prefix_sharing": True, "session_seconds": 60.0},
        "block_size": 8,
        "deterministic": True,
        "pools": [
            {
                "name": "short",
                "engine": {"num_kv_blocks": 80, "batching": {"mode": "split"}},
                "rule": {"slo_classes": ["interactive"], "prompt_tokens": {"most": 512}},
                "spill": {"to": "over", "held_share": 0.5},
            },
            {"name": "over", "engine": {"max_active_requests": 4, "preemption": {"victim": "least-computed"}}},
        ],
        "router": {"turns": "priority"},
    }
)


def under(settings: EngineSettings, *, in_suite: bool) -> LoadedRun:
    recorded = settings.as_recorded()
    changes = {"suite": {"name": "s", "engine": recorded}} if in_suite else {"suite": None, "engine": recorded}
    return replace(RUN, manifest=RUN.manifest.model_copy(update=changes))


def columns(table: Table | None) -> list[dict[str, str]]:
    assert table is not None
    return [{row[0]: row[column] for row in table.rows} for column in range(1, len(table.headers))]


def test_one_engine_has_one_column_with_its_defaults_too() -> None:
    run = under(EngineSettings.model_validate({"max_active_requests": 8, "kernel_set": "reference"}), in_suite=True)
    table = engine_settings_table(RunView(run, None))
    [value] = columns(table)
    expected = {
        "KV cache stored as": "fp16: bfloat16, fp16-aa: bfloat16, int8-w8a16: bfloat16, int4-g64: bfloat16",
        "max_active_requests": "8", "max_step_tokens": "256", "block_size": "16", "batching.mode": "mixed",
        "num_kv_blocks": "as many as all active requests may need", "max_context_tokens": "the model's own limit",
        "admission.estimator": "guaranteed", "preemption.victim": "last-in", "deterministic": "no",
        "cache.prefix_sharing": "no", "timeouts.request_s": "no limit", "kernel_set": "reference",
        "batching.slo_classes": "interactive (max_wait_s 1.00, max_prefills 8, reserved_active 0); batch (max_wait_s "
        "no limit, max_prefills no limit, reserved_active 0)",
    }  # fmt: skip
    assert value | expected == value


def test_each_pool_shows_what_it_ran_with_and_what_it_takes() -> None:
    table = engine_settings_table(RunView(under(POOLS, in_suite=False), None))
    short, over = columns(table)
    assert table is not None
    assert table.headers == ["setting", "pool short", "pool over"]
    for pool in (short, over):
        shared = {"block_size": "8", "cache.prefix_sharing": "yes", "cache.session_seconds": "60.0",
                  "deterministic": "yes", "router.turns": "priority"}  # fmt: skip
        assert pool | shared == pool
    assert (short["num_kv_blocks"], over["num_kv_blocks"]) == ("80", "as many as all active requests may need")
    assert (short["max_active_requests"], over["max_active_requests"]) == ("16", "4")
    assert (short["pool.rule.slo_classes"], over["pool.rule.slo_classes"]) == ("interactive", "any")
    assert short["pool.rule.prompt_tokens.most"] == "512"
    assert (short["pool.spill.to"], short["pool.spill.held_share"], over["pool.spill"]) == ("over", "0.500", "none")


def test_the_page_has_them_for_arms_of_the_bundled_engine_alone() -> None:
    run = under(POOLS, in_suite=True)
    text = read_page(render_report(run, None)).text
    assert "Settings of the engine" in text
    assert "preemption.victim" in text
    servers = [arm.model_copy(update={"target": "http://fp16:8000"}) for arm in run.manifest.arms]
    remote = replace(run, manifest=run.manifest.model_copy(update={"arms": servers}))
    assert engine_settings_table(RunView(remote, None)) is None
    assert engine_settings_table(RunView(RUN, None)) is None
    assert "Settings of the engine" not in read_page(render_report(remote, None)).text
