"""Counts of tokens: those that a log states, and how long an answer was by the best of what the log tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quantgate.traces.openai_log.columns import Paths, as_paths
from quantgate.traces.openai_log.left_out import RowLeftOutError
from quantgate.traces.openai_log.log_row import OutputLengthFrom
from quantgate.traces.openai_log.lookup import first_present
from quantgate.traces.openai_log.times import number_of

# No context of today's models is longer; a larger count is damage, and would keep every arm busy for days.
_MOST_TOKENS = 10_000_000

# Rough for English text under today's tokenizers; used only where nothing better is known, and said so.
_CHARACTERS_PER_TOKEN = 4


def stated_tokens(row: dict[str, Any], paths: Paths) -> int | None:
    """The count of tokens at the first path that has one. Raises ValueError, naming the field, for what is none."""
    return _whole_number(row, paths, "tokens", least=0)


def stated_answers(row: dict[str, Any], paths: Paths) -> int:
    """How many answers were asked for: 1 where the row does not say. Raises ValueError, naming the field."""
    return _whole_number(row, paths, "answers", least=1) or 1


def length_of_text(text: str, count_tokens: Callable[[str], int] | None) -> tuple[int, OutputLengthFrom]:
    """A recorded answer's length: under the run's tokenizer where there is one, else by its characters."""
    if count_tokens is not None:
        return count_tokens(text), "answer"
    return -(-len(text) // _CHARACTERS_PER_TOKEN), "answer_characters"


def output_length(
    stated: int | None,
    answer: str | None,
    limit_tokens: int | None,
    count_tokens: Callable[[str], int] | None,
    looked_for: str,
) -> tuple[int, OutputLengthFrom]:
    """The answer's length, by the first that is known: the server's count, the recorded text, the request's limit.

    looked_for: the fields' names, for the message. Raises RowLeftOutError where nothing tells, and for no tokens.
    """
    tokens = stated
    source: OutputLengthFrom = "usage"
    if tokens is None and answer is not None:
        tokens, source = length_of_text(answer, count_tokens)
    if tokens is None and limit_tokens:
        tokens, source = limit_tokens, "limit"
    if tokens is None:
        raise RowLeftOutError("without_output_length", f"expected {looked_for}; got none of them")
    if tokens == 0:
        raise RowLeftOutError("empty_answer", "expected an answer of at least one token")
    return tokens, source


def _whole_number(row: dict[str, Any], paths: Paths, of_what: str, *, least: int) -> int | None:
    path, value = first_present(row, as_paths(paths))
    if not path:
        return None
    number = number_of(value)
    # The range comes first: the digits of 1e999999999, written out as an integer, fill the memory.
    if number is None or not least <= number <= _MOST_TOKENS or number != int(number):
        raise ValueError(
            f"field {path}: expected a number of {of_what} from {least} to {_MOST_TOKENS}, got {value!r:.40}"
        )
    return int(number)
