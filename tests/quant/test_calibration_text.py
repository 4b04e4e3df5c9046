from __future__ import annotations

import pytest

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.calibration.passages import WORDS_OF_A_PASSAGE, passage_hashes, require_disjoint
from quantgate_engine.quant.calibration.settings import CalibrationSettings
from quantgate_engine.quant.calibration.text import draw_tokens, python_code, python_prose

QUESTION = "A cook has nine pans and lends four of them to a friend, so how many pans are left on her shelf tonight?"


def encode(text: str) -> list[int]:
    return list(text.encode())


def decoded(tokens: list[int]) -> str:
    return bytes(tokens).decode(errors="ignore")


def test_a_passage_is_known_in_any_spelling_and_anywhere() -> None:
    hidden = f"Some words before.\n  {QUESTION.upper()}\n\n...and some behind them, as it happens!"
    assert passage_hashes(QUESTION) <= passage_hashes(hidden.replace(" pans", "  PANS,"))


def test_texts_that_share_no_run_of_words_share_no_hash() -> None:
    words = QUESTION.split()
    shared = " ".join(words[: WORDS_OF_A_PASSAGE - 1])
    assert passage_hashes(QUESTION).isdisjoint(passage_hashes(f"{shared} something else altogether {shared}"))
    assert passage_hashes(QUESTION) & passage_hashes(" ".join(words[:WORDS_OF_A_PASSAGE]) + " something else")


def test_a_short_text_is_one_passage_and_an_empty_one_none() -> None:
    assert len(passage_hashes("How many pans?")) == 1
    assert passage_hashes("how many PANS") == passage_hashes("How many pans?")
    assert passage_hashes(" ...\n") == frozenset()


def test_a_text_with_a_question_in_it_is_refused() -> None:
    require_disjoint(["Nothing of the kind."], passage_hashes(QUESTION))
    with pytest.raises(ConfigurationError, match=r"begins 'Once upon a time.*shares 11 passages"):
        require_disjoint(["fine", f"Once upon a time. {QUESTION} The end."], passage_hashes(QUESTION))


def test_the_same_seed_draws_the_same_tokens() -> None:
    settings = CalibrationSettings(sequences=6, tokens=200, seed=3)
    first, second = draw_tokens(encode, settings), draw_tokens(encode, settings)
    assert first.token_ids.shape == (6, 200)
    assert first.sha256 == second.sha256
    assert first.sha256 != draw_tokens(encode, CalibrationSettings(sequences=6, tokens=200, seed=4)).sha256


def test_prose_and_code_take_turns_and_no_piece_comes_twice() -> None:
    drawn = draw_tokens(encode, CalibrationSettings(sequences=40, tokens=300)).token_ids.tolist()
    assert len(set(map(tuple, drawn))) == 40
    kinds = {0: python_prose(), 1: python_code()}
    for index, tokens in enumerate(drawn):
        assert any(decoded(tokens) in text for text in kinds[index % 2])


def test_a_text_of_pythons_that_holds_a_forbidden_passage_is_left_out() -> None:
    settings = CalibrationSettings(sequences=8, tokens=400)
    plain = draw_tokens(encode, settings)
    source = next(text for text in python_prose() if decoded(plain.token_ids[0].tolist()) in text)
    apart = draw_tokens(encode, settings, forbidden=passage_hashes(source[200:800]))
    assert apart.sha256 != plain.sha256
    assert all(decoded(tokens) not in source for tokens in apart.token_ids.tolist())


def test_own_text_replaces_pythons_and_must_be_apart() -> None:
    own = ["The harbour was quiet. " * 40, "A second letter came in May. " * 40]
    settings = CalibrationSettings(sequences=4, tokens=100)
    drawn = draw_tokens(encode, settings, own=own).token_ids.tolist()
    assert all(any(decoded(tokens) in text for text in own) for tokens in drawn)
    with pytest.raises(ConfigurationError, match="flatters itself"):
        draw_tokens(encode, settings, forbidden=passage_hashes(QUESTION), own=[*own, QUESTION])


def test_too_little_text_is_told_with_what_there_is() -> None:
    with pytest.raises(ConfigurationError, match="holds 3 sequences of 10 tokens; 5 were asked for"):
        draw_tokens(encode, CalibrationSettings(sequences=5, tokens=10), own=["x" * 35])


@pytest.mark.parametrize("name", ["sequences", "tokens"])
def test_settings_of_nothing_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"CalibrationSettings\.{name} is 0"):
        CalibrationSettings(**{name: 0})
