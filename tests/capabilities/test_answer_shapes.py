"""What is read of a whole answer can be kept: no half characters, and no text where there is none."""

from __future__ import annotations

import json
from typing import Any

from quantgate.capabilities.answer_shapes import has_answer, text_of


def of_wire(text: str) -> Any:
    return json.loads(text)


def test_half_a_character_is_replaced_and_a_whole_one_kept() -> None:
    assert text_of(of_wire(r'{"choices": [{"text": "a\ud83d b"}]}')) == "a\ufffd b"
    assert text_of(of_wire(r'{"choices": [{"message": {"content": "\ud83d\ude00"}}]}')) == "\U0001f600"


def test_an_answer_is_text_or_a_message_whose_content_is_text_or_absent() -> None:
    given = [{"text": ""}, {"message": {"content": "a"}}, {"message": {"content": None}}, {"message": {}}]
    assert all(has_answer({"choices": [choice]}) for choice in given)
    others = [{"text": 5}, {"text": None}, {}, {"message": {"content": 7}}, {"message": 3}]
    assert not any(has_answer({"choices": [choice]}) for choice in others)
    assert not has_answer({"choices": []})


def test_anything_but_text_is_no_text() -> None:
    assert text_of({"choices": [{"text": 5}]}) is None
    assert text_of({"choices": [{"message": {"content": 7}, "text": "x"}]}) is None
    assert text_of(None) is None
