"""A queue goes out blinded, comes back filled in, and every way of breaking it is told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.judging.answered_run import (
    AA,
    BASELINE,
    CANDIDATE,
    ScriptedJudge,
    answered_run,
    judge_all,
    preferring_baseline,
    store,
)
from typer.testing import CliRunner

from quantgate.cli.main import app
from quantgate.judging.answer_pairs import AnswerPair
from quantgate.judging.pair_verdicts import judged_pairs
from quantgate.judging.review.priority import by_priority, difference
from quantgate.judging.review.queue_file import QueueItem, ReviewQueue, queue_text, read_queue
from quantgate.store.run_folder import load_run
from quantgate_engine.errors import ConfigurationError

REQUESTS = 12
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    store(answered_run(REQUESTS, preferring_baseline(0.5, REQUESTS, seed=4)), path)
    return path


def quantgate(*words: object) -> Any:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def export(folder: Path, items: int = 5, name: str = "queue.yaml", *more: str) -> Path:
    out = folder.parent / name
    quantgate("review", "export", folder, "--items", items, "--out", out, *more)
    return out


def filled(queue: Path, edit: Edit) -> Path:
    """The YAML queue with `edit` applied to its document."""
    document = yaml.safe_load(queue.read_text(encoding="utf-8"))
    edit(document)
    queue.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return queue


def choose(choice: object) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        for item in document["items"]:
            item["better"] = choice

    return edit


def test_the_queue_names_no_arm_and_shows_both_orders(folder: Path) -> None:
    text = export(folder, REQUESTS).read_text(encoding="utf-8")
    for name in (BASELINE, AA, CANDIDATE, "baseline", "candidate"):
        assert name not in text
    key = json.loads((folder / "review_key.json").read_text())["entries"]
    assert {entry["arm_id"] for entry in key.values()} == {CANDIDATE}
    assert {entry["order"] for entry in key.values()} == {"baseline_first", "baseline_second"}
    assert "Question" not in (folder / "review_key.json").read_text()


@pytest.mark.parametrize("name", ["queue.yaml", "queue.jsonl"])
def test_answers_come_back_as_verdicts(folder: Path, name: str) -> None:
    queue = export(folder, 5, name)
    run_id, filed = read_queue(queue)
    assert len(filed) == 5
    answered = [
        filed[0].item.model_copy(update={"better": 1, "note": "Says why."}),
        filed[1].item.model_copy(update={"better": "2"}),
        filed[2].item.model_copy(update={"better": "tie"}),
        *[each.item for each in filed[3:]],
    ]
    queue.write_text(queue_text(queue, ReviewQueue(run_id=run_id, items=answered)), encoding="utf-8")
    result = quantgate("review", "import", folder, queue, "--reviewer", "anna", "--json")
    assert json.loads(result.stdout) | {"schema": ""} == {"schema": "", "new": 3, "unchanged": 0, "open": 2}

    key = json.loads((folder / "review_key.json").read_text())["entries"]
    expected = {}
    for item, shown in zip(answered[:3], ("1", "2", "tie"), strict=True):
        first_is_baseline = key[item.id]["order"] == "baseline_first"
        expected[key[item.id]["request_id"]] = (
            "tie" if shown == "tie" else "baseline" if (shown == "1") == first_is_baseline else "other"
        )
    pairs = [pair for pair in judged_pairs(load_run(folder).judgements) if pair.preferred is not None]
    assert {pair.request_id: pair.preferred for pair in pairs} == expected
    assert {pair.source for pair in pairs} == {"human"}
    rows = load_run(folder).judgements.to_pylist()
    assert [(row["judge"], row["reason"]) for row in rows if row["reason"]] == [("anna", "Says why.")]


def test_a_queue_without_a_judge_is_a_sample_of_its_own(folder: Path) -> None:
    """Pairs that were asked and not answered stay on record, so that half a queue is not taken for all of it."""
    export(folder, 5)
    pairs = judged_pairs(load_run(folder).judgements)
    assert [(pair.preferred, pair.source) for pair in pairs] == [(None, "human")] * 5


def test_after_a_judge_the_doubtful_pairs_come_first(folder: Path) -> None:
    run = load_run(folder)
    _, _, judged = judge_all(run, folder, ScriptedJudge(position_bias=0.4, seed=3))
    known = {pair.request_id: pair for pair in judged_pairs(judged.judgements) if pair.arm_id == CANDIDATE}
    _, filed = read_queue(export(folder, REQUESTS))
    key = json.loads((folder / "review_key.json").read_text())["entries"]
    in_order = [known[key[each.item.id]["request_id"]] for each in filed]
    groups = [0 if pair.orders_disagree else 1 if pair.preferred == "baseline" else 2 for pair in in_order]
    assert groups == sorted(groups)
    assert len(set(groups)) == 3
    # A person's word for a tie stands above the judge.
    queue = filled(folder.parent / "queue.yaml", choose("tie"))
    quantgate("review", "import", folder, queue)
    after = [pair for pair in judged_pairs(load_run(folder).judgements) if pair.arm_id == CANDIDATE]
    assert {(pair.preferred, pair.source) for pair in after} == {("tie", "human")}


def test_the_gate_goes_by_what_people_say(tmp_path: Path) -> None:
    """The judge prefers every answer of the baseline, and the build is stopped; people find no difference."""
    folder, policy = tmp_path / "run", tmp_path / "policy.yaml"
    folder.mkdir()
    run = answered_run(REQUESTS, lambda arm, index: {BASELINE: 500, AA: 500, CANDIDATE: 100}[arm])
    store(run, folder)
    judge_all(run, folder, ScriptedJudge())
    policy.write_text(
        "schema: quantgate.policy/1\nname: p\ngain: null\nrules: [{metric: preference, margin: 40pp}]\n",
        encoding="utf-8",
    )
    judged = quantgate("gate", folder, "--policy", policy)
    assert judged.exit_code == 1, judged.output
    quantgate("review", "import", folder, filled(export(folder, REQUESTS), choose("tie")))
    reviewed = quantgate("gate", folder, "--policy", policy, "--json")
    assert reviewed.exit_code == 0, reviewed.output
    (rule,) = json.loads(reviewed.stdout)["arms"][CANDIDATE]["rules"]
    assert (rule["outcome"], rule["counts"]["decided_by_people"]) == ("pass", REQUESTS)


def test_differing_words_decide_inside_a_group() -> None:
    def pair(number: int, other: str) -> AnswerPair:
        return AnswerPair("a", f"r{number}", 0, f"r{number}", (), "?", "one two three four", other)

    near, far = pair(1, "one two three five"), pair(2, "six seven eight nine")
    assert (difference(near), difference(far)) == (0.25, 1.0)
    assert by_priority([near, far], {}) == [far, near]


def test_the_next_export_brings_what_is_not_reviewed(folder: Path) -> None:
    first = filled(export(folder, 5), choose(1))
    quantgate("review", "import", folder, first)
    ids = {each.item.id for each in read_queue(first)[1]}
    _, filed = read_queue(export(folder, REQUESTS, "next.yaml"))
    assert len(filed) == REQUESTS - 5
    assert ids.isdisjoint(each.item.id for each in filed)
    quantgate("review", "import", folder, filled(folder.parent / "next.yaml", choose(2)))
    with pytest.raises(ConfigurationError, match="no pair of differing answers left"):
        export(folder, 5, "last.yaml")


def test_importing_again_changes_nothing_and_a_change_of_mind_is_told(folder: Path) -> None:
    queue = filled(export(folder, 3), choose(1))
    quantgate("review", "import", folder, queue)
    before = load_run(folder).judgements
    assert "0 answers taken over, 3 known before" in quantgate("review", "import", folder, queue).stdout
    assert load_run(folder).judgements.equals(before)
    filled(queue, choose("tie"))
    with pytest.raises(ConfigurationError, match=r"field better: item \w+ was imported before as '1'"):
        quantgate("review", "import", folder, queue)
    quantgate("review", "import", folder, queue, "--replace")
    pairs = judged_pairs(load_run(folder).judgements)
    assert [pair.preferred for pair in pairs] == ["tie"] * 3


def _set(name: str, value: object) -> Edit:
    return lambda document: document["items"][1].__setitem__(name, value)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (_set("id", "0123456789ab"), r"line \d+, field id: '0123456789ab' is no item of a queue exported from run"),
        (_set("answer_2", "Mine."), r"line \d+, field answer_2: the text of item \w+ is not the one"),
        (_set("request", "Mine?"), r"line \d+, field request: the text"),
        (_set("better", 3), r"line \d+, field items.1.better: expected .*'tie'.*, got 3"),
        (_set("better", "answer 1"), r"field items.1.better: expected"),
        (_set("score", 3), r"field items.1.score: unknown key"),
        (lambda document: document["items"].append(document["items"][0]), r"stands here again, after .*line \d+"),
        (lambda document: document.update(run_id="other"), "This queue is of run other, not of"),
        (lambda document: document.update(schema="x"), "field schema: expected 'quantgate.review/1'"),
        (lambda document: document["items"][0].pop("id"), "field items.0.id: this key is missing"),
    ],
)
def test_a_broken_queue_is_refused_whole(folder: Path, edit: Edit, sentence: str) -> None:
    queue = filled(export(folder, 4), choose(1))
    before = load_run(folder).judgements
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        quantgate("review", "import", folder, filled(queue, edit))
    assert "queue.yaml" in str(caught.value) or "of run other" in str(caught.value)
    assert load_run(folder).judgements.equals(before)


def test_errors_name_the_line_of_the_item(folder: Path) -> None:
    queue = export(folder, 3)
    text = queue.read_text(encoding="utf-8").replace("  better: null", "  better: 1")
    lines = text.splitlines()
    wanted = [number for number, line in enumerate(lines, 1) if line.startswith("- id:")][2]
    lines[wanted - 1] = "- id: nobody"
    queue.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=rf"queue.yaml, line {wanted}, field id"):
        quantgate("review", "import", folder, queue)


def test_a_jsonl_queue_names_its_lines(folder: Path) -> None:
    queue = export(folder, 3, "queue.jsonl")
    lines = queue.read_text(encoding="utf-8").splitlines()
    for broken, sentence in (
        ("{", "line 3: not valid JSON"),
        (lines[2].replace('"better": null', '"better": 7'), "line 3, field better: expected"),
        (lines[2].replace('"id": "', '"id": "x'), "line 3, field id"),
    ):
        queue.write_text("\n".join([*lines[:2], broken, *lines[3:]]), encoding="utf-8")
        with pytest.raises(ConfigurationError, match=sentence):
            quantgate("review", "import", folder, queue)
    queue.write_text("\n\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="the file is empty"):
        quantgate("review", "import", folder, queue)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), min_size=3, max_size=3))
@example(["\x85", "a\u2028\nb", "\u2029"])
def test_any_text_survives_both_formats(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    request, answer_1, answer_2 = texts
    item = QueueItem(id="i", request=request, answer_1=answer_1, answer_2=answer_2)
    queue = ReviewQueue(run_id="run", items=[item])
    for name in ("queue.yaml", "queue.jsonl"):
        path = tmp_path_factory.getbasetemp() / name
        path.write_bytes(queue_text(path, queue).encode())
        run_id, filed = read_queue(path)
        assert (run_id, [each.item for each in filed]) == ("run", [item])


def test_an_editor_may_wrap_and_trim_lines(folder: Path) -> None:
    queue = export(folder, 3)

    def reflow(document: dict[str, Any]) -> None:
        choose(2)(document)
        for item in document["items"]:
            item["answer_1"] = item["answer_1"].replace(" ", "\n", 1) + "\n"

    quantgate("review", "import", folder, filled(queue, reflow))
    assert len([pair for pair in judged_pairs(load_run(folder).judgements) if pair.preferred]) == 3


def test_files_that_cannot_be_written_or_read_are_told(folder: Path) -> None:
    queue = export(folder, 3)
    with pytest.raises(ConfigurationError, match="which is there already"):
        export(folder, 3)
    export(folder, 3, "queue.yaml", "--force")
    with pytest.raises(ConfigurationError, match=r"a \.yaml or \.jsonl file"):
        export(folder, 3, "queue.txt")
    with pytest.raises(ConfigurationError, match="is no folder"):
        export(folder, 3, "missing/queue.yaml")
    os.mkfifo(folder.parent / "pipe.yaml")
    with pytest.raises(ConfigurationError, match="a device, a pipe or a socket"):
        export(folder, 3, "pipe.yaml", "--force")
    with pytest.raises(ConfigurationError, match="no such file"):
        quantgate("review", "import", folder, folder / "none.yaml")
    (folder / "review_key.json").unlink()
    with pytest.raises(ConfigurationError, match=r"has no review_key\.json"):
        quantgate("review", "import", folder, queue)
