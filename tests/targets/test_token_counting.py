"""Tokens of each chunk, by every way to count them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantgate.targets.openai.token_counting import Chunk, TokenCount, count_tokens


class WordTokenizer:
    """A token is a word with the space before it, or a mark."""

    def __call__(self, text: str, **options: Any) -> dict[str, list[tuple[int, int]]]:
        assert options == {"add_special_tokens": False, "return_offsets_mapping": True}
        return {"offset_mapping": [found.span() for found in re.finditer(r" ?\w+|\W", text)]}


WORDS: Any = WordTokenizer()


def chunks(*texts: str) -> list[Chunk]:
    return [Chunk(text) for text in texts]


def test_token_ids_are_believed_first() -> None:
    counted = count_tokens([Chunk("a", (1, 2), 1), Chunk("b", (3,), 1)], 3, WORDS)
    assert counted == TokenCount((2, 1), "ids", (1, 2, 3))


def test_token_ids_that_contradict_the_usage_are_not_believed() -> None:
    assert count_tokens([Chunk("a", (1, 2), 1), Chunk("b", (3,), 1)], 2, None) == TokenCount((1, 1), "logprobs")


def test_token_ids_must_be_complete() -> None:
    assert count_tokens([Chunk("a", (1, 2)), Chunk("b")], None, None).counted_by == "chunks"
    assert count_tokens([Chunk("a", ()), Chunk("b", ())], None, None).counted_by == "chunks"


def test_usage_says_that_every_chunk_is_one_token() -> None:
    assert count_tokens(chunks("Hello", " wor", "ld"), 3, WORDS) == TokenCount((1, 1, 1), "usage")


@pytest.mark.parametrize(("total", "expected"), [(2, (1, 1, 0)), (3, (1, 1, 1))])
def test_usage_may_count_the_end_token(total: int, expected: tuple[int, ...]) -> None:
    counted = count_tokens([*chunks("a", "b"), Chunk(is_stop=True)], total, None)
    assert counted == TokenCount(expected, "usage")


def test_a_token_belongs_to_the_chunk_that_completes_it() -> None:
    """Tokens: "one", " two", " three", "!"; " three" begins in the second chunk and ends in the third."""
    counted = count_tokens(chunks("one two", " th", "ree!"), None, WORDS)
    assert counted == TokenCount((2, 0, 2), "retokenized")


def test_the_first_chunk_has_the_first_token_even_if_it_is_a_part_of_it() -> None:
    assert count_tokens(chunks("o", "ne two"), None, WORDS).per_chunk == (1, 1)


def test_retokenized_counts_are_scaled_to_the_usage() -> None:
    """Counts 2, 1, 1 scaled to 8: cuts at 0, 4, 6, 8."""
    assert count_tokens(chunks("a b", " c", " d"), 8, WORDS) == TokenCount((4, 2, 2), "retokenized")


def test_without_a_tokenizer_the_usage_is_spread_by_length_of_text() -> None:
    assert count_tokens(chunks("abcd", "ef", "gh"), 4, None) == TokenCount((2, 1, 1), "chunks")


def test_without_anything_every_chunk_is_one_token() -> None:
    assert count_tokens([*chunks("a b c", "d"), Chunk(is_stop=True)], None, None) == TokenCount((1, 1, 0), "chunks")


def test_an_answer_without_chunks_has_no_token() -> None:
    assert count_tokens([], None, WORDS).per_chunk == ()
    assert count_tokens([], 0, None) == TokenCount((), "usage")
    assert count_tokens([], 7, None).per_chunk == ()


CHUNKS = st.lists(
    st.builds(
        Chunk,
        st.text("ab 🙂", max_size=6),
        st.none() | st.lists(st.integers(0, 9), max_size=3).map(tuple),
        st.none() | st.integers(0, 3),
    ),
    min_size=1,
    max_size=12,
)


@given(chunks=CHUNKS, total=st.none() | st.integers(0, 40), tokenizer=st.sampled_from([None, WORDS]))
def test_counts_add_up_to_the_usage_and_start_with_the_first_chunk(
    chunks: list[Chunk], total: int | None, tokenizer: Any
) -> None:
    counted = count_tokens(chunks, total, tokenizer)
    assert len(counted.per_chunk) == len(chunks)
    assert min(counted.per_chunk) >= 0
    if total is not None:
        assert sum(counted.per_chunk) == total
    if counted.counted_by in ("retokenized", "chunks") and any(counted.per_chunk):
        assert counted.per_chunk[0] >= 1
    if counted.token_ids:
        assert len(counted.token_ids) == sum(counted.per_chunk)
