"""Tokens of each chunk, by every way to count them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantgate.targets.openai.believable import Chunk, believed_total
from quantgate.targets.openai.token_counting import TokenCount, count_tokens


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


@pytest.mark.parametrize("total", [2, 3])
def test_an_end_token_that_only_usage_counts_has_no_time(total: int) -> None:
    """The event that ends an answer often comes with the last text: its gap is none between two tokens."""
    counted = count_tokens([*chunks("a", "b"), Chunk(is_stop=True)], total, None)
    assert counted == TokenCount((1, 1, 0), "usage")


def test_an_end_token_that_the_server_shows_counts() -> None:
    assert count_tokens([Chunk("a", (1,)), Chunk(token_ids=(2,))], 2, None) == TokenCount((1, 1), "ids", (1, 2))


def test_an_end_token_alone_is_the_answer() -> None:
    assert count_tokens([Chunk(is_stop=True)], 1, None) == TokenCount((1,), "usage")
    assert count_tokens([Chunk(is_stop=True)], 0, None) == TokenCount((0,), "usage")


@pytest.mark.parametrize("tokenizer", [None, WORDS])
def test_a_total_above_what_was_asked_for_is_not_believed(tokenizer: Any) -> None:
    seen = count_tokens(chunks("a", " b"), None, tokenizer, limit=10)
    assert count_tokens(chunks("a", " b"), 100_000_000, tokenizer, limit=10) == seen
    assert seen.per_chunk == (1, 1)


def test_ids_and_log_probs_above_what_was_asked_for_are_not_believed() -> None:
    counted = count_tokens([Chunk("a", (1, 2, 3), 3), Chunk("b", (4,), 1)], 4, None, limit=3)
    assert counted == TokenCount((1, 1), "chunks")


def test_where_nobody_knows_the_limit_the_text_bounds_the_total() -> None:
    """Two texts of 1 and 4 bytes, and a token in each chunk that may not show."""
    assert believed_total(7, chunks("a", "🙂"), None) == 7
    assert believed_total(8, chunks("a", "🙂"), None) is None


@pytest.mark.parametrize("total", [0, 1])
def test_a_total_that_would_erase_times_that_were_seen_is_not_believed(total: int) -> None:
    assert count_tokens(chunks("a", "b", "c"), total, None) == TokenCount((1, 1, 1), "chunks")


def test_the_last_text_has_a_token_so_that_its_time_is_the_answers_end() -> None:
    assert count_tokens(chunks("abcdefgh", "i", "j"), 2, None) == TokenCount((1, 0, 1), "spread")


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
    assert count_tokens(chunks("abcd", "ef", "gh"), 4, None) == TokenCount((2, 1, 1), "spread")


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


@given(
    chunks=CHUNKS,
    total=st.none() | st.integers(0, 40),
    tokenizer=st.sampled_from([None, WORDS]),
    limit=st.none() | st.integers(1, 30),
)
def test_counts_add_up_to_a_believed_usage_and_give_both_ends_of_the_text_a_token(
    chunks: list[Chunk], total: int | None, tokenizer: Any, limit: int | None
) -> None:
    counted = count_tokens(chunks, total, tokenizer, limit)
    assert len(counted.per_chunk) == len(chunks)
    assert min(counted.per_chunk) >= 0
    if believed_total(total, chunks, limit) is not None:
        assert sum(counted.per_chunk) == total
    if counted.counted_by in ("retokenized", "spread", "chunks") and any(counted.per_chunk):
        assert counted.per_chunk[0] >= 1
        assert counted.per_chunk[-1] >= 1 or sum(counted.per_chunk) == 1
    if counted.token_ids:
        assert len(counted.token_ids) == sum(counted.per_chunk)
