"""docs/trace-format.md tells every field of our own trace format, and the published schema takes what we publish."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
from tests.docs.pages import ROOT, read, section, table_rows, words_in_code

from quantgate.published_schemas import published_schemas
from quantgate.traces.native_row import NativeRow

PAGE = read("docs/trace-format.md")
SCHEMA = published_schemas()["trace.schema.json"]
EXAMPLES = [json.loads(line) for line in section(PAGE, "# Trace format").splitlines() if line.startswith('{"id"')]


VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_every_field_has_its_row_and_default() -> None:
    rows = {words_in_code(row[0])[0]: row for row in table_rows(section(PAGE, "## Fields"))}
    assert rows.keys() == {field.alias or name for name, field in NativeRow.model_fields.items()}
    required = {field.alias or name for name, field in NativeRow.model_fields.items() if field.is_required()}
    assert {name for name, row in rows.items() if "required" in row[2]} == required


def test_every_checker_has_its_row() -> None:
    rows = {words_in_code(row[0])[0]: words_in_code(row[1]) for row in table_rows(section(PAGE, "## Checkers"))}
    definitions = {
        definition["properties"]["kind"]["const"]: definition["properties"].keys() - {"kind"}
        for definition in SCHEMA["$defs"].values()
        if "kind" in definition["properties"]
    }
    assert rows.keys() == definitions.keys()
    assert all(fields <= set(rows[kind]) for kind, fields in definitions.items())


def test_examples_are_rows_of_the_format() -> None:
    assert len(EXAMPLES) >= 3
    for row in EXAMPLES:
        VALIDATOR.validate(row)
        NativeRow.model_validate_json(json.dumps(row))


def test_the_sample_fits_the_published_schema() -> None:
    lines = (ROOT / "replay_samples" / "quick.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines:
        VALIDATOR.validate(json.loads(line))


@pytest.mark.parametrize(
    "row",
    [
        {"id": "a", "offset": 0, "max_tokens": 1},
        {"id": "a", "offset": 0, "max_tokens": 1, "prompt": "x", "prompt_tokens": 3},
        {"id": "a", "offset": 0, "max_tokens": 1, "prompt": "x", "unknown": 1},
        {"id": "a", "offset": 0, "prompt": "x"},
        {"id": "a", "offset": 0, "max_tokens": 1, "prompt_tokens": 3, "prompt_blocks": [0]},
        {"id": "a", "offset": 0, "max_tokens": 1, "prompt_tokens": 3, "block_tokens": 16},
        {"id": "a", "offset": 0, "max_tokens": 1, "prompt_tokens": 3, "recorded_prompt_tokens": 3},
    ],
    ids=[
        "no prompt",
        "two prompts",
        "unknown field",
        "no length",
        "blocks of no size",
        "a size of no blocks",
        "two lengths",
    ],
)
def test_the_published_schema_refuses_what_the_reader_refuses(row: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(row)
    with pytest.raises(ValueError, match=re.compile("expected|Field required|not permitted")):
        NativeRow.model_validate_json(json.dumps(row))
