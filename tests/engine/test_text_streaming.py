"""Text of streamed tokens: no half characters, and stop strings wherever tokens are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.byte_tokenizer import END, VOCABULARY, make_byte_tokenizer
from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from quantgate_engine.text.answer_text import AnswerText
from quantgate_engine.text.detokenizer import IncrementalDetokenizer
from quantgate_engine.text.stop_strings import StopStrings
from quantgate_engine.text.token_pieces import TokenPieces

BYTES = make_byte_tokenizer()


def _fallback_tokenizer() -> PreTrainedTokenizerFast:
    """Words with a start mark, and single bytes for what they do not cover, as SentencePiece models have them."""
    vocabulary = {f"<0x{byte:02X}>": byte for byte in range(256)}
    vocabulary |= {"\N{LOWER ONE EIGHTH BLOCK}hi": 256, "\N{LOWER ONE EIGHTH BLOCK}you": 257, "ng": 258}
    backend = Tokenizer(BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    backend.decoder = decoders.Sequence(
        [
            decoders.Replace("\N{LOWER ONE EIGHTH BLOCK}", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1),
        ]
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, clean_up_tokenization_spaces=False)


FALLBACK = _fallback_tokenizer()


def _pieces(tokenizer: PreTrainedTokenizerFast, token_ids: list[int]) -> list[str]:
    detokenizer = IncrementalDetokenizer(tokenizer)
    return [*(detokenizer.push(token_id) for token_id in token_ids), detokenizer.flush()]


@given(st.lists(st.integers(0, VOCABULARY - 1), max_size=40))
def test_pieces_of_any_tokens_make_the_text_of_all(token_ids: list[int]) -> None:
    """Valid text, broken text and special tokens: byte-level decoding does not depend on the cut."""
    assert "".join(_pieces(BYTES, token_ids)) == BYTES.decode(token_ids, skip_special_tokens=True)


@given(st.text(max_size=20))
def test_no_piece_of_a_valid_text_has_a_replacement_in_it(text: str) -> None:
    token_ids = BYTES(text)["input_ids"]
    pieces = _pieces(BYTES, token_ids)
    assert "".join(pieces) == BYTES.decode(token_ids, skip_special_tokens=True)
    if "\N{REPLACEMENT CHARACTER}" not in text:
        assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in pieces)


@given(st.lists(st.sampled_from([[256], [257], [258], [*"é".encode()], [*"中".encode()], [*"🙂".encode()]])))
def test_byte_fall_back_completes_characters_one_by_one(groups: list[list[int]]) -> None:
    token_ids = [token_id for group in groups for token_id in group]
    pieces = _pieces(FALLBACK, token_ids)
    assert "".join(pieces) == FALLBACK.decode(token_ids)
    assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in pieces)


def test_a_character_comes_with_its_last_token() -> None:
    e_acute, bytes_of_middle = list("é".encode()), [0xE4, 261]
    assert _pieces(BYTES, [*e_acute, ord("a"), *bytes_of_middle]) == ["", "é", "a", "", "中", ""]


def test_bytes_that_never_become_a_character_are_shown_at_the_end_and_do_not_pile_up() -> None:
    assert _pieces(BYTES, [0xE4, 0xB8]) == ["", "", "\N{REPLACEMENT CHARACTER}"]
    pieces = _pieces(BYTES, [0xFF] * 200)
    assert "".join(pieces) == "\N{REPLACEMENT CHARACTER}" * 200
    assert max(map(len, pieces)) < 100


def test_words_keep_the_spaces_between_them() -> None:
    assert _pieces(FALLBACK, [256, 257, 258]) == ["hi", " you", "ng", ""]


@given(
    st.text("abc", max_size=30),
    st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=3),
    st.data(),
)
def test_stop_strings_cut_the_same_however_the_text_comes(text: str, stops: list[str], data: st.DataObject) -> None:
    """Against the definition, letter by letter: the first moment at which the text ends in a stop string."""
    expected = text
    for end in range(len(text) + 1):
        done = [stop for stop in stops if text[:end].endswith(stop)]
        if done:
            expected = text[: end - max(map(len, done))]
            break
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    watched, shown = StopStrings(stops), ""
    for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True):
        shown += watched.push(text[start:stop])
        assert expected.startswith(shown)
    assert shown + watched.flush() == expected
    assert watched.stopped == (expected != text)


def test_what_could_begin_a_stop_string_waits_and_comes_when_it_is_none() -> None:
    watched = StopStrings(["END"])
    assert [watched.push(piece) for piece in ["a E", "N", "E", "ND!"]] == ["a ", "", "EN", ""]
    assert watched.stopped


def test_an_answer_stops_across_tokens_and_counts_what_was_decoded() -> None:
    answer = AnswerText(BYTES, ["中!"])
    shown = [answer.push(token_id) for token_id in [ord("x"), 0xE4, 261, ord("!"), ord("y")]]
    assert shown == ["x", "", "", "", ""]
    assert answer.stopped
    assert answer.end() == ""
    assert answer.num_decoded == 4


@pytest.mark.parametrize(
    ("tokenizer", "token_id", "content", "text"),
    [
        (BYTES, ord("a"), b"a", "a"),
        (BYTES, 0x20, b" ", " "),
        (BYTES, 0xE4, b"\xe4", "bytes:\\xe4"),
        (BYTES, 261, b"\xb8\xad", "bytes:\\xb8\\xad"),
        (BYTES, 260, b"the", "the"),
        (BYTES, END, b"</s>", "</s>"),
        (BYTES, VOCABULARY - 1, b"", ""),
        (FALLBACK, 257, b" you", " you"),
        (FALLBACK, 0xE4, b"\xe4", "bytes:\\xe4"),
        (FALLBACK, 0x41, b"A", "A"),
    ],
)
def test_a_token_by_itself(tokenizer: PreTrainedTokenizerFast, token_id: int, content: bytes, text: str) -> None:
    pieces = TokenPieces(tokenizer)
    assert (pieces.bytes_of(token_id), pieces.text_of(token_id)) == (content, text)
