"""The shapes of log-probs as servers write them, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from tests.quality.fake_server import LenientTokenizer

from quantgate.capabilities.logprob_shapes import ListedPosition, read_logprobs, read_prompt_logprobs
from quantgate.capabilities.token_texts import TokenTexts

TEXTS = TokenTexts(LenientTokenizer())
A, B = 33, 34
"""The tokens of "A" and "B"."""


def answer(**choice: Any) -> dict[str, Any]:
    return {"choices": [choice]}


def test_prompt_logprobs_of_vllm() -> None:
    row = {"7": {"logprob": -0.5, "rank": 1, "decoded_token": "x"}, "9": {"logprob": -2.5, "rank": 8}}
    found = read_prompt_logprobs(answer(prompt_logprobs=[None, row]), [3, 9])
    assert found == [ListedPosition(None), ListedPosition(-2.5, {7: -0.5, 9: -2.5})]


def test_the_older_shape_names_tokens_by_text_or_by_id() -> None:
    logprobs = {
        "tokens": ["A", "B"], "token_logprobs": [None, -1.5],
        "top_logprobs": [None, {"A": -0.25, "token_id:34": -1.5, "\ufffd": -3.0}],
    }  # fmt: skip
    first, second = read_logprobs(answer(logprobs=logprobs), TEXTS)
    assert first == ListedPosition(None)
    assert second == ListedPosition(-1.5, {A: -0.25, B: -1.5}, unnamed=1)
    assert second.listed == 3


def test_the_chat_shape_with_the_ids_of_llama_cpp() -> None:
    entry = {
        "id": 5, "token": "?", "logprob": -0.1, "bytes": [63],
        "top_logprobs": [{"id": 5, "token": "?", "logprob": -0.1}, {"token": "A", "logprob": -2.0}],
    }  # fmt: skip
    assert read_logprobs(answer(logprobs={"content": [entry]}), TEXTS) == [ListedPosition(-0.1, {5: -0.1, A: -2.0})]


def test_nothing_listed_is_no_error() -> None:
    assert read_logprobs(answer(logprobs={"content": []}), TEXTS) == []
    assert read_logprobs(answer(logprobs=None), TEXTS) == read_logprobs(answer(text="x"), TEXTS) == []
    older = {"tokens": ["A"], "token_logprobs": [-1.0], "top_logprobs": None}
    assert read_logprobs(answer(logprobs=older), TEXTS) == [ListedPosition(-1.0)]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "not exactly one choice"),
        ({"choices": [{}, {}]}, "not exactly one choice"),
        (answer(logprobs=7), "no mapping"),
        (answer(logprobs={}), "neither content nor token_logprobs"),
        (answer(logprobs={"content": ["x"]}), "no mapping"),
        (answer(logprobs={"content": [{"token": "A"}]}), "no number"),
        (answer(logprobs={"token_logprobs": [-1], "top_logprobs": [None, None]}), "differ in length"),
    ],
)
def test_other_shapes_are_told(document: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_logprobs(document, TEXTS)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (None, "one entry for each of the 2"),
        ([None], "one entry for each of the 2"),
        ([None, {"7": {"logprob": -1.0}}], "leaves out the prompt's own token 9"),
        ([None, {"secret": {"logprob": -1.0}}], "^a key of prompt_logprobs is no token id$"),
        ([None, [1]], "no mapping"),
        ([None, {"9": {"logprob": None}}], "no number"),
    ],
)
def test_prompt_logprobs_that_do_not_fit_are_told(rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_prompt_logprobs(answer(prompt_logprobs=rows), [3, 9])


class WordPieces:
    """Two tokens share a text when decoded alone, and a word's start is written as SentencePiece writes it."""

    def get_vocab(self) -> dict[str, int]:
        return {"\u2581go": 0, "go": 1, "<0xE2>": 2, "<0x82>": 3, "same": 4, "same\u200b": 5}

    def decode(self, token_ids: Any) -> str:
        return {0: "go", 1: "go", 2: "\ufffd", 3: "\ufffd", 4: "same", 5: "same"}[token_ids[0]]


def test_a_text_names_a_token_only_where_it_is_its_own() -> None:
    texts = TokenTexts(WordPieces())
    assert [texts.token_id(text) for text in (" go", "go", "\ufffd", "same", "unknown")] == [0, 1, None, None, None]
    assert TokenTexts(None).token_id("go") is None
