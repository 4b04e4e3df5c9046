"""Whatever is wrong in a user's YAML file is told in one sentence with file, line and field."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator

from quantgate.validation import load_yaml_model, parse_yaml_model
from quantgate_engine.errors import ConfigurationError


class _Leaf(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    metric: str
    limit: float | str = 1.0
    kind: Literal["low", "high"] = "low"
    expires: date | None = None


class _Root(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    schema_: Literal["test/1"] = Field("test/1", alias="schema")
    count: int = Field(1, ge=1)
    factor: float = 1.0
    pair: tuple[int, ...] = Field((1, 2), min_length=2, strict=False)
    words: str | list[str] = ""
    leaves: list[_Leaf] = []
    by_name: dict[str, _Leaf] = {}

    @field_validator("count")
    @classmethod
    def _not_thirteen(cls, count: int) -> int:
        if count == 13:
            raise ValueError("13 is unlucky; choose another number")
        return count


CASES = [
    ("count: ten\n", "f.yaml, line 1, field count: expected an integer, got 'ten'."),
    ("count: 0\n", "f.yaml, line 1, field count: expected a value of at least 1, got 0."),
    ("count: true\n", "f.yaml, line 1, field count: expected an integer, got true."),
    ("count: 13\n", "f.yaml, line 1, field count: 13 is unlucky; choose another number."),
    ("\n\nschema: test/2\n", "f.yaml, line 3, field schema: expected 'test/1', got 'test/2'."),
    ("leaves:\n- metric: a\n- limit: 2\n", "f.yaml, line 3, field leaves.1.metric: this key is missing; add it."),
    ("leaves: 3\n", "f.yaml, line 1, field leaves: expected a list, got 3."),
    (
        "leaves:\n- metric: a\n  limit: [1]\n",
        "f.yaml, line 3, field leaves.0.limit: expected a number or text, got a list of 1 item.",
    ),
    (
        "leaves:\n- metric: a\n  metrik: b\n",
        "f.yaml, line 3, field leaves.0.metrik: unknown key, did you mean metric? "
        "(known keys: expires, kind, limit, metric).",
    ),
    (
        "by_name:\n  x:\n    metric: a\n    zzz: 1\n",
        "f.yaml, line 4, field by_name.x.zzz: unknown key, remove it (known keys: expires, kind, limit, metric).",
    ),
    (
        "by_name:\n  x: {metric: a, kind: mid}\n",
        "f.yaml, line 2, field by_name.x.kind: expected 'low' or 'high', got 'mid'.",
    ),
    (
        "by_name:\n  x: {metric: a, expires: soon}\n",
        "f.yaml, line 2, field by_name.x.expires: expected a date such as 2027-01-31, got 'soon'.",
    ),
    (
        "count: ten\nleaves: 3\n",
        "f.yaml, line 1, field count: expected an integer, got 'ten'. (1 more to mend in this document)",
    ),
    (
        "schema: 2026-01-01\n",
        "f.yaml, line 1, field schema: expected 'test/1', got 2026-01-01.",
    ),
    (
        "leaves: [{metric: 2026-01-01}]\n",
        "f.yaml, line 1, field leaves.0.metric: expected text, got 2026-01-01, because YAML takes 2026-01-01 for a "
        "date; put it in quotes.",
    ),
    (
        "leaves: [{metric: 2026-01-01T10:00:00Z}]\n",
        "f.yaml, line 1, field leaves.0.metric: expected text, got 2026-01-01 10:00:00+00:00, because YAML takes "
        "2026-01-01T10:00:00Z for a date; put it in quotes.",
    ),
    (
        "leaves: [{metric: 12:30:00}]\n",
        "f.yaml, line 1, field leaves.0.metric: expected text, got 45000, because YAML takes 12:30:00 for a number; "
        "put it in quotes.",
    ),
    (
        "leaves: [{metric: no}]\n",
        "f.yaml, line 1, field leaves.0.metric: expected text, got false, because YAML takes no for true or false; put "
        "it in quotes.",
    ),
    (
        "leaves: [{metric: !!set {a, b}}]\n",
        "f.yaml, line 1, field leaves.0.metric: expected text, got a set of 2 items.",
    ),
    (
        "factor: 1e308\n",
        "f.yaml, line 1, field factor: expected a number, got '1e308', because YAML takes it for text; write 1.0e+308.",
    ),
    (
        "factor: -1.5e-3x\n",
        "f.yaml, line 1, field factor: expected a number, got '-1.5e-3x'.",
    ),
    (
        "factor: '1e3'\n",
        "f.yaml, line 1, field factor: expected a number, got '1e3'.",
    ),
    (
        "count: 1e3\n",
        "f.yaml, line 1, field count: expected an integer, got '1e3', because YAML takes it for text; write all "
        "its digits.",
    ),
    ("pair: [1, x]\n", "f.yaml, line 1, field pair.1: expected an integer, got 'x'."),
    (
        "pair: [x]\n",
        "f.yaml, line 1, field pair.0: expected an integer, got 'x'. (1 more to mend in this document)",
    ),
    (
        "words: [a, 5]\n",
        "f.yaml, line 1, field words.1: expected text, got 5, because YAML takes 5 for a number; put it in quotes.",
    ),
    ("count: 1\ncount: 2\n", "f.yaml, line 2, field count: this key stands twice in one mapping; keep one of them."),
    ("- 1\n", "f.yaml, line 1: expected a mapping of keys to values, got a list of 1 item."),
    (
        "",
        "f.yaml: the file is empty; expected a mapping of keys to values (known keys: by_name, count, factor, leaves, "
        "pair, schema, words).",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), CASES)
def test_the_sentence_names_file_line_and_field(text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_yaml_model(text, _Root, name="f.yaml")
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("count: [1\n", "f.yaml, line 2: not valid YAML"),
        ("count: !!python/object/apply:os.getcwd []\n", "f.yaml, line 1: not valid YAML: could not determine a con"),
        ("by_name:\n  x: {metric: a, expires: 2027-02-30}\n", "f.yaml, line 2: not valid YAML: '2027-02-30' cannot"),
        ("[" * 600, "f.yaml: nested too deeply"),
        ("count: \x00\n", "f.yaml, line 1: the character U+0000 may not stand"),
    ],
)
def test_text_that_is_no_safe_yaml_is_refused(text: str, start: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_yaml_model(text, _Root, name="f.yaml")
    assert str(caught.value).startswith(start)
    assert "\n" not in str(caught.value)


def test_a_file_is_read_and_its_absence_told(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    with pytest.raises(ConfigurationError, match="there is no such file"):
        load_yaml_model(path, _Root)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_yaml_model(tmp_path, _Root)
    path.write_bytes(b"count: \xff\n")
    with pytest.raises(ConfigurationError, match="byte 7 is not UTF-8"):
        load_yaml_model(path, _Root)
    path.write_text("schema: test/1\nleaves:\n- metric: a\n  expires: 2027-01-31\n")
    assert load_yaml_model(path, _Root).leaves[0].expires == date(2027, 1, 31)


@given(st.text(max_size=60))
def test_any_text_ends_in_a_model_or_one_sentence(text: str) -> None:
    message = "f.yaml"
    try:
        parse_yaml_model(text, _Root, name="f.yaml")
    except ConfigurationError as error:
        message = str(error)
    assert message.startswith("f.yaml")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("2027-02-30", "f.yaml, line 3: not valid YAML: '2027-02-30' cannot be read as a date; correct it, or quote"),
        ("!!int abc", "f.yaml, line 3: not valid YAML: 'abc' cannot be read"),
        ("\0", "f.yaml, line 3: the character U+0000 may not stand in YAML; remove it."),
    ],
)
def test_a_value_that_yaml_cannot_read_is_told_with_its_line(value: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_yaml_model(f"count: 1\nleaves:\n- expires: {value}\n", _Root, name="f.yaml")
    assert str(caught.value).startswith(sentence)


def test_merged_keys_of_yaml_are_read() -> None:
    text = "by_name:\n  x: &x {metric: a, limit: 2}\n  y: {<<: *x, metric: b}\n"
    assert parse_yaml_model(text, _Root, name="f").by_name["y"] == _Leaf(metric="b", limit=2.0)


def test_a_pipe_is_no_settings_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ConfigurationError, match="no regular file"):
        load_yaml_model(pipe, _Root)
