"""Text of models and files: nothing in it may act, and nothing in it may hide."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from tests.report.page_reader import read_page

from quantgate.report.charts.svg import element
from quantgate.report.untrusted import Excerpt, excerpt, visible


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("a\x00b\x1b[31m", "a\u2400b\u241b[31m"),
        ("carriage\rreturn", "carriage\u240dreturn"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("lone \ud83d surrogate", "lone \\ud83d surrogate"),
        ("\x7f\x85", "\\u007f\\u0085"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("naïve 日本 😀", "naïve 日本 😀"),
    ],
)
def test_hidden_characters_are_spelled_out(text: str, seen: str) -> None:
    assert visible(text) == seen


@given(st.text(alphabet=st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Lu"])))
def test_no_control_or_direction_character_survives(text: str) -> None:
    left = {c for c in visible(text) if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")}
    assert left <= {"\n", "\t"}
    visible(text).encode("utf-8")


@given(st.text(min_size=1))
def test_any_text_comes_through_markup_as_text(text: str) -> None:
    page = read_page(str(element("text", text, id=text)))
    assert [tag for tag, _ in page.elements] == ["text"]
    assert page.text == visible(text)
    assert page.elements[0][1]["id"] == visible(text)


def test_markup_of_our_own_is_kept_and_numbers_are_short() -> None:
    assert element("g", Markup("<b/>"), x=1.25, y=3.0) == '<g x="1.2" y="3"><b/></g>'


def test_an_excerpt_counts_what_it_cuts() -> None:
    assert excerpt("abcdef", 4) == Excerpt("abcd", 2)
    assert excerpt("abc", 4) == Excerpt("abc", 0)
    assert excerpt(None, 4) is None
