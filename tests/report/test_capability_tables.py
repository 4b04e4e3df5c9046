"""The page's tables of what servers give and of how far each tier was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from tests.report.stored_run import build_run

from quantgate.capabilities.capabilities import Capabilities
from quantgate.report.render import render_report
from quantgate.report.run_view import RunView
from quantgate.report.sections.capabilities import capabilities_table, tier_table
from quantgate.report.sections.distribution_quality import distribution_table
from quantgate.store.run_folder import LoadedRun
from quantgate.store.tier_status import TierStatus

FOUND = Capabilities(
    model="m", models=["m"], completions=True, token_id_prompts=True, prompt_logprobs=1020, generated_logprobs=5,
    tokens_identified=True, seed=None, ignore_eos=False, tokenizer="agrees",
)  # fmt: skip
STATUSES = [
    TierStatus(tier="distribution", arm_id="fp16", status="partial", reason="only 20 <tokens> are compared"),
    TierStatus(tier="answers", arm_id="int4-g64", status="not_measurable", reason="it is mute"),
    TierStatus(tier="likelihood", arm_id="fp16", status="exact"),
]


def run_with(**changes: Any) -> LoadedRun:
    run = build_run(requests=20, items=4)
    return replace(run, manifest=run.manifest.model_copy(update=changes))


def probed_run() -> LoadedRun:
    arms = build_run(requests=20, items=4).manifest.arms
    given = FOUND.model_dump(mode="json")
    return run_with(arms=[arm.model_copy(update={"capabilities": given}) for arm in arms], quality_tiers=STATUSES)


def test_what_a_server_gives_is_told_in_words() -> None:
    table = capabilities_table(RunView(probed_run(), None))
    assert table is not None
    cells = {row[0]: row[1] for row in table.rows}
    assert table.headers == ["the server gives", "fp16", "int8-w8a16", "int4-g64"]
    assert cells["log-probs of prompt tokens, alternatives each"] == "1,020"
    assert cells["log-probs of echoed tokens, alternatives each"] == "not asked"
    assert cells["prompts as token ids"] == "yes"
    assert cells["ignore_eos honoured"] == "no"
    assert cells["seeds honoured"] == "not told"
    assert cells["the run's tokenizer"] == "reads as the server does"


def test_every_tier_that_is_not_exact_has_its_reason_on_the_page() -> None:
    table = tier_table(RunView(probed_run(), None))
    assert table is not None
    assert table.rows[0] == [
        "closeness to the baseline", "fp16", "measured in part", "only 20 <tokens> are compared",
    ]  # fmt: skip
    assert table.rows[1][2:] == ["not measurable", "it is mute"]
    page = render_report(probed_run(), None)
    assert "only 20 &lt;tokens&gt; are compared" in page
    assert "What each server gives" in page


def test_a_run_in_this_process_needs_neither_table() -> None:
    view = RunView(run_with(quality_tiers=[STATUSES[2]]), None)
    assert capabilities_table(view) is None
    assert tier_table(view) is None
    assert "What could be measured" not in render_report(view.run, None)


def test_a_bound_is_called_one_and_measures_without_values_have_no_row() -> None:
    run = build_run(requests=20, items=4)
    table = distribution_table(RunView(run, None))
    assert table is not None
    assert not any("lower bound" in row[0] for row in table.rows)
    names = {"kl": "kl_topk", "kl_p99": "kl_topk_p99"}
    rows = [row | {"metric": names.get(row["metric"], row["metric"])} for row in run.quality.to_pylist()]
    renamed = replace(run, quality=pa.Table.from_pylist(rows, schema=run.quality.schema))
    bound = distribution_table(RunView(renamed, None))
    assert bound is not None
    assert [row[0].count("lower bound") for row in bound.rows] == [1, 1, 0, 0, 0, 0]
    assert not any(row[0].startswith("KL divergence, mean") for row in bound.rows)
