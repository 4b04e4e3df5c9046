"""What is read of a whole answer can be kept: no half characters, and no text where there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quantgate.capabilities.answer_shapes import has_answer, returned_ids, text_of, usage_of


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


@pytest.mark.parametrize(("told", "count"), [(3, 3), (3.0, 3), (-1, None), (True, None), (2**64, None), ("3", None)])
def test_a_count_is_a_number_of_tokens_or_not_told(told: object, count: int | None) -> None:
    assert usage_of({"usage": {"completion_tokens": told}}, "completion_tokens") == count


@pytest.mark.parametrize("unusable", [2**70, -1, True, "7"])
def test_token_ids_that_no_tokenizer_can_have_are_not_returned(unusable: object) -> None:
    assert returned_ids({"choices": [{"token_ids": [1, 2]}]}) == [1, 2]
    assert returned_ids({"choices": [{"token_ids": [1, unusable]}]}) == []
