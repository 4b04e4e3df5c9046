"""`quantgate trace inspect`: a table for people, a documented JSON document for machines, one sentence for mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import read, section, table_rows, words_in_code
from tests.traffic.log_files import chat_row, write_log
from typer.testing import CliRunner

from quantgate.cli.main import app
from quantgate_engine.errors import ConfigurationError

NOON = 1_769_860_800


@pytest.fixture
def azure(tmp_path: Path) -> Path:
    path = tmp_path / "azure.csv"
    rows = [f"2024-05-10 00:00:{3 * (number // 2):02d}+00:00,{1000 + number},{10 + number}" for number in range(40)]
    path.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]))
    return path


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["trace", "inspect", *arguments])
    assert result.exit_code == 0, result.exception
    return result.stdout


def test_the_table_says_each_figure_with_its_unit(azure: Path) -> None:
    text = " ".join(printed(str(azure)).replace("│", " ").split())
    assert "azure.csv (azure-csv)" in text
    assert "rows 40 in 57 s" in text
    assert "rate 0.68 requests/s" in text
    assert "counts in windows of 10 s variance/mean 0.13 (Poisson: 1), peak/mean 1.2, 6 windows" in text
    assert "windows of 60 s" not in text
    assert "clock ticks every 3.000 s: 20 ticks, 2.0 rows a tick, 2 at most" in text
    assert "input tokens p50 1,020, p90 1,035, p95 1,037, p99 1,039, max 1,039" in text
    assert "input : output 34.6 : 1" in text
    assert "1,024: 20%" in text


def test_the_document_has_every_field_that_its_page_tells_and_no_other(tmp_path: Path, azure: Path) -> None:
    log = write_log(tmp_path / "access.jsonl", *(chat_row(NOON + at, "hi", session_id="s") for at in range(3)))
    blocks = tmp_path / "mooncake.jsonl"
    blocks.write_text("\n".join(json.dumps(block_row(at, ids)) for at, ids in enumerate(([1, 2], [1, 3], [1, 2]))))
    documents = [json.loads(printed(str(path), "--json")) for path in (azure, log, blocks)]
    assert [document["schema"] for document in documents] == ["quantgate.trace-inspection/1"] * 3
    assert [document["rows"] for document in documents] == [40, 3, 3]
    assert documents[2]["prefix_sharing"] == {"blocks": 6, "shared_blocks": 3, "shared_share": 0.5}
    assert documents[1]["sessions"] == {"sessions": 1, "turns": 3, "most_turns": 3}
    page = section(read("docs/commands/trace.md"), "## inspect")
    told = {name for row in table_rows(page) for name in words_in_code(row[0])}
    assert {name for name in told if not name.startswith("--")} == documents[0].keys() - {"schema"}
    nested = set(words_in_code(page))
    for document in documents:
        assert inner_names(document) <= nested


def block_row(at: int, ids: list[int]) -> dict[str, Any]:
    return {"timestamp": 1000 * at, "input_length": 512 * len(ids), "output_length": 5, "hash_ids": ids}


def test_blocks_of_another_size_are_told_by_a_flag(tmp_path: Path) -> None:
    path = tmp_path / "blocks.jsonl"
    path.write_text(json.dumps(block_row(0, [1, 2]) | {"input_length": 30}))
    text = " ".join(printed(str(path), "--block-tokens", "16").replace("│", " ").split())
    assert "prompts' blocks 2, of which 0.0% follow a start that an earlier prompt had too" in text
    with pytest.raises(ConfigurationError, match="--block-tokens"):
        CliRunner().invoke(app, ["trace", "inspect", str(path)], catch_exceptions=False)


def inner_names(document: dict[str, Any]) -> set[str]:
    parts = [document[name] for name in ("input_tokens", "output_tokens", "clock", "sessions", "prefix_sharing")]
    return {name for part in [*parts, *document["counts"], *document["steps"]] if part for name in part}


def test_a_log_is_read_as_its_column_map_says(tmp_path: Path) -> None:
    log = write_log(tmp_path / "x.log", {"at": 0, "q": "hi", "n": 5}, {"at": 2, "q": "ho", "n": 7})
    columns = tmp_path / "columns.yaml"
    columns.write_text("schema: quantgate.columns/1\ntime: {path: at, unit: s}\nprompt: q\noutput_tokens: n\n")
    document = json.loads(printed(str(log), "--columns", str(columns), "--json"))
    assert (document["span_s"], document["output_tokens"]["max"]) == (2.0, 7)
    assert (document["input_tokens"], document["rows_of_unknown_input"]) == (None, 2)
    text = " ".join(printed(str(log), "--columns", str(columns)).replace("│", " ").split())
    assert "input tokens not told by these rows" in text
    assert "step: read log 2 rows in, 2 out, 0 touched; shape: column map" in text


def test_rows_left_out_are_shown_by_kind_or_refused(tmp_path: Path) -> None:
    log = write_log(tmp_path / "access.jsonl", chat_row(NOON, "hi"), chat_row(NOON + 1, "hi", status_code=500))
    assert "left out: failed" in printed(str(log))
    with pytest.raises(ConfigurationError, match="line 2: field status_code: expected a status below 400"):
        CliRunner().invoke(app, ["trace", "inspect", str(log), "--strict"], catch_exceptions=False)


def test_a_wrong_row_is_named(azure: Path) -> None:
    azure.write_text(azure.read_text() + "\n2024-05-10 00:00:00+00:00,5,5")
    with pytest.raises(ConfigurationError, match=r"azure.csv, line 42: expected a time not before the previous row's"):
        CliRunner().invoke(app, ["trace", "inspect", str(azure)], catch_exceptions=False)
