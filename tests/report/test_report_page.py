"""The whole page: what stands in it, in every state of a run, and what must never stand in it."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.report.page_reader import read_page
from tests.report.stored_run import build_run, build_verdict

from quantgate.report.render import render_report
from quantgate.report.sections import flip_ledger
from quantgate.store.redaction import without_text
from quantgate.store.run_folder import LoadedRun
from quantgate.store.schemas import QUALITY, REQUESTS, STEPS

ATTACKS = (
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    "'+alert(1)+'",
    "</pre></details><iframe src=//example.org>",
    "\x00\x1b]8;;http://example.org\x07\u202e",
)


@pytest.fixture(scope="module")
def run() -> LoadedRun:
    return build_run()


@pytest.fixture(scope="module")
def html(run: LoadedRun) -> str:
    return render_report(run, build_verdict(), price_per_hour=1.2)


def test_it_is_one_file_that_names_no_other(html: str) -> None:
    page = read_page(html)
    for tag, attributes in page.elements:
        assert tag not in {"img", "iframe", "object", "embed", "form", "base", "audio", "video"}
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name != "style", "the content policy forbids style attributes"
            if name in {"src", "href", "action", "data"}:
                assert str(value).startswith("#") or value == "data:,", (tag, value)
    assert "url(" not in page.raw["style"]
    assert "@import" not in page.raw["style"]


def test_the_content_policy_allows_exactly_our_style_and_script(html: str) -> None:
    page = read_page(html)
    policy = next(
        str(a["content"]) for a in page.attributes("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(page.raw[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert len(page.attributes("script")) == 1


def test_the_first_screen_answers_the_question(html: str) -> None:
    text = read_page(html).text
    start = text[: text.index("An arm is one precision")]
    for expected in ("Do not ship", "Ship", "RAG accuracy falls by 7.5 pp", "112 MB instead of 269 MB",
                     "Q4_1, groups of 32", "unlike kernel paths", "A million output tokens cost"):  # fmt: skip
        assert expected in start.replace("\u00a0", " ")


def test_every_link_within_the_page_has_a_target_and_ids_are_unique(html: str) -> None:
    page = read_page(html)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {str(a["href"])[1:] for a in page.attributes("a")} <= {str(name) for name in ids}


def test_charts_carry_words_for_those_who_do_not_see_them(html: str) -> None:
    page = read_page(html)
    charts = [a for a in page.attributes("svg") if a.get("role") == "img"]
    assert len(charts) > 15
    assert len(page.attributes("desc")) == len(charts)


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_a_model_writes_stays_text(attack: str, html: str) -> None:
    harmless = read_page(html)
    attacked = read_page(render_report(build_run(text=attack), build_verdict(), price_per_hour=1.2))
    assert [tag for tag, _ in attacked.elements] == [tag for tag, _ in harmless.elements]
    assert attacked.raw == harmless.raw
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", attacked.text)
    assert attacked.text.count("alert(1)") == 0 or attack.replace("\x00", "") in attacked.text


def test_hostile_names_stay_text_too(run: LoadedRun) -> None:
    name = '"><script>alert(1)</script>'
    arms = [arm.model_copy(update={"arm_id": arm.arm_id + name, "notes": [name]}) for arm in run.manifest.arms]
    renamed = {
        table_name: table.set_column(0, "arm_id", pa.array([f"{arm}{name}" for arm in table["arm_id"].to_pylist()]))
        for table_name, table in (("requests", run.requests), ("steps", run.steps), ("quality", run.quality))
    }
    manifest = run.manifest.model_copy(update={"arms": arms, "run_id": name, "phase": name})
    page = read_page(render_report(LoadedRun(manifest=manifest, **renamed), None))
    assert len(page.attributes("script")) == 1
    assert name in page.text


def test_flips_are_counted_and_the_cut_is_stated(monkeypatch: pytest.MonkeyPatch, run: LoadedRun) -> None:
    monkeypatch.setattr(flip_ledger, "MOST_FLIPS_PER_ARM", 5)
    monkeypatch.setattr(flip_ledger, "MOST_CHARACTERS", 10)
    text = read_page(render_report(run, build_verdict())).text
    right = {
        arm: {
            (row["task"], row["metric"], row["item_id"]): row["value"]
            for row in run.quality.to_pylist()
            if row["arm_id"] == arm and row["tier"] == "task"
        }
        for arm in ("fp16", "int4-g64")
    }
    lost = sum(right["fp16"][key] > right["int4-g64"][key] for key in right["fp16"])
    won = sum(right["fp16"][key] < right["int4-g64"][key] for key in right["fp16"])
    assert f"int4-g64: {lost} lost, {won} won" in text
    assert f"{lost + won - 5} more items are left out here" in text
    assert "more characters were cut here" in text


def test_a_percentile_that_n_cannot_carry_is_not_printed() -> None:
    text = read_page(render_report(build_run(requests=40, items=4), build_verdict())).text
    row = re.search(r"TTFT p95(.*?)TPOT p50", text[text.index("requests finished") :], re.DOTALL)
    assert row is not None
    assert row.group(1).strip() == "–" * 4


def test_four_hundred_requests_make_less_than_three_megabytes() -> None:
    assert len(render_report(build_run(text="long answer " * 400), build_verdict()).encode()) < 3_000_000


def test_thousands_of_requests_do_not_make_the_page_grow(html: str) -> None:
    assert len(render_report(build_run(requests=5_000), build_verdict())) < 1.2 * len(html)


def test_an_interrupted_run_says_so_and_shows_what_it_has(run: LoadedRun) -> None:
    manifest = run.manifest.model_copy(update={"state": "interrupted", "phase": "quality", "fidelity": []})
    partial = replace(run, manifest=manifest, quality=QUALITY.empty_table())
    text = read_page(render_report(partial, None)).text
    assert 'interrupted in the phase "quality"' in text
    assert "ended before it could be judged" in text
    assert "Quality was not measured" in text
    assert "TTFT over time" in text


def test_a_run_without_anything_still_renders(run: LoadedRun) -> None:
    manifest = run.manifest.model_copy(
        update={"state": "failed", "phase": "load", "failure": "The disk is full.", "arms": [], "workload": None,
                "fidelity": [], "policy": None, "suite": None}
    )  # fmt: skip
    empty = LoadedRun(manifest, REQUESTS.empty_table(), STEPS.empty_table(), QUALITY.empty_table())
    text = read_page(render_report(empty, None)).text
    assert "failed in the phase" in text
    assert "The disk is full." in text


def test_arms_that_were_not_reached_still_render(run: LoadedRun) -> None:
    first = run.requests.filter(pc.equal(run.requests["arm_id"], "fp16")).slice(0, 1)
    text = read_page(
        render_report(LoadedRun(run.manifest, first, STEPS.empty_table(), QUALITY.empty_table()), None)
    ).text
    assert "not reached" in text


def test_an_invalid_run_has_no_verdict_but_a_warning(run: LoadedRun) -> None:
    assert "Invalid run: no verdict." in read_page(render_report(run, build_verdict("invalid"))).text


def test_planted_noise_is_declared(run: LoadedRun) -> None:
    manifest = run.manifest.model_copy(update={"planted": {"int4-g64": 0.1}})
    assert "planted on purpose" in read_page(render_report(replace(run, manifest=manifest), None)).text


def test_a_run_without_text_renders(run: LoadedRun) -> None:
    bare = replace(run, requests=without_text("requests", run.requests), quality=without_text("quality", run.quality))
    text = read_page(render_report(bare, build_verdict())).text
    assert "no text was kept" in text
    assert "plain text" not in text[: text.index("What was run, and how")]
