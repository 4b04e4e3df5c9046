"""Whatever stands in a YAML file ends in a model or in one short sentence on one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from quantgate.validation import parse_yaml_model
from quantgate_engine.errors import ConfigurationError


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    count: int = 1
    kept: bool = False
    name: str = ""
    sizes: tuple[int, ...] = ()
    by_name: dict[str, int] = {}


def refusal(text: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        parse_yaml_model(text, _Settings, name="f.yaml")
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("? [1]\n: 2\n", "f.yaml, line 1: expected keys that are text, got a list or a mapping as a key."),
        ("? {a: 1}\n: 2\n", "f.yaml, line 1: expected keys that are text, got a list or a mapping as a key."),
        (
            "by_name:\n  true: 3\n",
            "f.yaml, line 2, field by_name.true: expected a key that is text, but YAML takes true for true or false; "
            "put it in quotes.",
        ),
        (
            "kept: !!bool 3\n",
            "f.yaml, line 1: not valid YAML: '3' cannot be read as true or false; correct it, or quote ",
        ),
        ("count: !!timestamp x\n", "f.yaml, line 1: not valid YAML: 'x' cannot be read as a date; correct it, or quot"),
        ("count: !!int ''\n", "f.yaml, line 1: not valid YAML: '' cannot be read as a number; correct it, or quote"),
        (f"count: {'9' * 5000}\n", f"f.yaml, line 1: not valid YAML: '{'9' * 76}... cannot be read as a number; corre"),
        (
            f"name: 0x{'f' * 5000}\n",
            "f.yaml, line 1, field name: expected text, got a number of too many digits to wri",
        ),
        ("by_name: &a\n  b: *a\n", "f.yaml, line 1, field by_name.b: this value holds itself; write out what it is to"),
        ('"a\\nb": 3\n', "f.yaml, line 1, field 'a\\nb': unknown key, remove it"),
        ('"\\u202e": 3\n', "f.yaml, line 1, field '\\u202e': unknown key, remove it"),
        ('"": 3\n', "f.yaml, line 1, field '': unknown key, remove it"),
        (
            '"\\ud800": 1\n',
            "f.yaml, line 1: expected whole characters, got half of one, '\\ud800'; write the character.",
        ),
        ('name: "\\udc00"\n', "f.yaml, line 1, field name: expected whole characters, got half of one, '\\udc00'"),
        ("by_name: {a: {b: 1, b: 2}}\n", "f.yaml, line 1, field by_name.a.b: this key stands twice in one mapping"),
    ],
)
def test_odd_values_are_told_with_their_place(text: str, sentence: str) -> None:
    assert refusal(text).startswith(sentence)


@pytest.mark.parametrize(
    "text",
    [
        f"{'k' * 5000}: 1\n",
        f"name: [{'x' * 5000}]\n",
        f"by_name: {{{'k' * 5000}: x}}\n",
        f"sizes: [{', '.join(map(str, range(5000)))}, x]\n",
        f"count: !{'t' * 5000} 1\n",
        f"count: *{'a' * 5000}\n",
    ],
)
def test_sentences_stay_short(text: str) -> None:
    assert len(refusal(text)) < 500


_TAGS = st.sampled_from(
    [
        "",
        *(
            f"!!{tag} "
            for tag in ("int", "float", "bool", "null", "timestamp", "binary", "set", "omap", "pairs", "str")
        ),
    ]
)
_VALUES = st.sampled_from(
    ["x", "3", "''", "'1_'", "0o9", "1:99", "[1]", "{a: 1}", "[{a: 1}]", "=", "<<", "~", "2001-99-01"]
)


@given(_TAGS, _VALUES, _TAGS, _VALUES)
def test_any_tag_on_any_value_ends_in_a_model_or_one_sentence(tag: str, key: str, other: str, value: str) -> None:
    for text in (f"count: {tag}{value}\n", f"? {tag}{key}\n: {other}{value}\n", f"by_name: {{a: [{tag}{value}]}}\n"):
        message = "f.yaml"
        try:
            parse_yaml_model(text, _Settings, name="f.yaml")
        except ConfigurationError as error:
            message = str(error)
        assert message.startswith("f.yaml")
        assert message.isprintable()
