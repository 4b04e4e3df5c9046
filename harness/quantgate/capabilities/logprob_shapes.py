"""Reads the shapes in which OpenAI-compatible servers list log-probs.

`prompt_logprobs` (vLLM): one mapping of token id to {logprob, rank, decoded_token} a prompt token, null for the first.
`logprobs` in the older shape: tokens, token_logprobs and top_logprobs side by side, alternatives named by their text.
`logprobs.content` in the chat shape: one entry a token with its top_logprobs; llama.cpp adds the token's id.
Every reader raises ValueError where an answer has none of these shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quantgate.capabilities.token_texts import TokenTexts

_NAMED_BY_ID = "token_id:"
"""How vLLM names a token where it is asked for ids in place of texts."""


@dataclass(frozen=True, slots=True)
class ListedPosition:
    """What a server lists at one position, in nats.

    own: log-prob of the token that stands there (None: the server gives none, as for a prompt's first token).
    alternatives: log-probs by token id, of the tokens that can be told apart. unnamed: how many others were listed.
    """

    own: float | None
    alternatives: Mapping[int, float] = field(default_factory=dict)
    unnamed: int = 0

    @property
    def listed(self) -> int:
        return len(self.alternatives) + self.unnamed


def read_prompt_logprobs(answer: Any, prompt_ids: Sequence[int]) -> list[ListedPosition]:
    """One position for each prompt token, the first without anything."""
    rows = _choice(answer).get("prompt_logprobs")
    if not isinstance(rows, list) or len(rows) != len(prompt_ids):
        raise ValueError(f"prompt_logprobs has not one entry for each of the {len(prompt_ids)} prompt tokens")
    return [_prompt_position(row, token_id) for row, token_id in zip(rows, prompt_ids, strict=True)]


def read_logprobs(answer: Any, texts: TokenTexts) -> list[ListedPosition]:
    """One position for each token in `logprobs`: the generated ones, with the prompt's before them under echo.

    None at all where the server lists nothing.
    """
    logprobs = _choice(answer).get("logprobs")
    if logprobs is None:
        return []
    if not isinstance(logprobs, Mapping):
        raise ValueError("logprobs is no mapping")
    content = logprobs.get("content")
    if isinstance(content, list):
        return [_content_position(entry, texts) for entry in content]
    return _older_positions(logprobs, texts)


def _choice(answer: Any) -> Mapping[str, Any]:
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], Mapping):
        raise ValueError("the answer has not exactly one choice")
    return choices[0]


def _prompt_position(row: Any, token_id: int) -> ListedPosition:
    if row is None:
        return ListedPosition(own=None)
    if not isinstance(row, Mapping):
        raise ValueError("an entry of prompt_logprobs is no mapping")
    if not all(str(key).isdecimal() for key in row):
        raise ValueError("a key of prompt_logprobs is no token id")
    alternatives = {int(key): _number(_entry(value).get("logprob")) for key, value in row.items()}
    if token_id not in alternatives:
        raise ValueError(f"prompt_logprobs leaves out the prompt's own token {token_id}")
    return ListedPosition(alternatives[token_id], alternatives)


def _content_position(entry: Any, texts: TokenTexts) -> ListedPosition:
    own = _number(_entry(entry).get("logprob"))
    listed = [_entry(alternative) for alternative in entry.get("top_logprobs") or ()]
    named = [(_token_id(alternative, texts), _number(alternative.get("logprob"))) for alternative in listed]
    return _position(own, named)


def _older_positions(logprobs: Mapping[str, Any], texts: TokenTexts) -> list[ListedPosition]:
    own, tops = logprobs.get("token_logprobs"), logprobs.get("top_logprobs")
    if not isinstance(own, list):
        raise ValueError("logprobs has neither content nor token_logprobs")
    tops = tops if isinstance(tops, list) else [None] * len(own)
    if len(tops) != len(own):
        raise ValueError("token_logprobs and top_logprobs differ in length")
    return [
        _position(
            None if value is None else _number(value),
            [(_named_token(text, texts), _number(logprob)) for text, logprob in _entry(top or {}).items()],
        )
        for value, top in zip(own, tops, strict=True)
    ]


def _position(own: float | None, named: Sequence[tuple[int | None, float]]) -> ListedPosition:
    alternatives = {token_id: logprob for token_id, logprob in named if token_id is not None}
    return ListedPosition(own, alternatives, unnamed=len(named) - len(alternatives))


def _token_id(alternative: Mapping[str, Any], texts: TokenTexts) -> int | None:
    token_id = alternative.get("id")
    return token_id if isinstance(token_id, int) else _named_token(str(alternative.get("token", "")), texts)


def _named_token(text: str, texts: TokenTexts) -> int | None:
    number = text.removeprefix(_NAMED_BY_ID)
    return int(number) if number != text and number.isdecimal() else texts.token_id(text)


def _entry(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("an entry of logprobs is no mapping")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a log-prob is no number")
    return float(value)
