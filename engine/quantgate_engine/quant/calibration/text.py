"""Calibration text that every machine has: the prose of Python's language reference, and the code of its library."""

from __future__ import annotations

import random
import sysconfig
from collections.abc import Callable, Collection, Iterator
from hashlib import sha256
from itertools import chain, islice, zip_longest
from pathlib import Path

import torch

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.calibration.passages import passage_hashes, require_disjoint
from quantgate_engine.quant.calibration.settings import CalibrationSettings, CalibrationTokens

Encode = Callable[[str], list[int]]
"""A text -> its tokens, with none that marks a beginning or an end."""

SHORTEST_TEXT = 2000
"""Characters. Much of what is shorter is a list of names."""


def python_prose() -> list[str]:
    """The topics of `help()`: the language reference, in the order of their names."""
    from pydoc_data.topics import topics

    return [text for _, text in sorted(topics.items()) if len(text) >= SHORTEST_TEXT]


def python_code() -> list[str]:
    """The library's modules, in the order of their names; packages, tests among them, are left out."""
    folder = Path(sysconfig.get_path("stdlib"))
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("*.py")))
    return [text for text in texts if len(text) >= SHORTEST_TEXT]


def draw_tokens(
    encode: Encode, settings: CalibrationSettings, forbidden: Collection[str] = frozenset(), own: Collection[str] = ()
) -> CalibrationTokens:
    """Prose and code in turn, or the caller's own texts; the same for the same seed, Python and tokenizer.

    forbidden: `passage_hashes` of every text that the model will be judged by. Of Python's texts those that share one
    are left out; of the caller's own, one that does is an error. So is too little text.
    """
    require_disjoint(own, forbidden)
    kinds = [list(own)] if own else [_apart(python_prose(), forbidden), _apart(python_code(), forbidden)]
    chooser = random.Random(settings.seed)
    for texts in kinds:
        chooser.shuffle(texts)
    pieces = [_pieces(texts, encode, settings.tokens, chooser) for texts in kinds]
    in_turn = (piece for piece in chain.from_iterable(zip_longest(*pieces)) if piece is not None)
    drawn = list(islice(in_turn, settings.sequences))
    if len(drawn) < settings.sequences:
        raise ConfigurationError(
            f"The calibration text holds {len(drawn)} sequences of {settings.tokens} tokens; {settings.sequences} were "
            "asked for. Ask for fewer or shorter ones, or bring more text."
        )
    tokens = torch.tensor(drawn, dtype=torch.int64)
    return CalibrationTokens(tokens, sha256(tokens.numpy().tobytes()).hexdigest())


def _apart(texts: list[str], forbidden: Collection[str]) -> list[str]:
    return [text for text in texts if not forbidden or passage_hashes(text).isdisjoint(forbidden)]


def _pieces(texts: list[str], encode: Encode, length: int, chooser: random.Random) -> Iterator[list[int]]:
    """One piece of each text in turn, then a second of each, at places drawn by chance. Encodes texts when needed."""
    waiting: list[list[list[int]]] = []
    for text in texts:
        tokens = encode(text)
        first = chooser.randint(0, len(tokens) % length)
        cut = [tokens[start : start + length] for start in range(first, len(tokens) - length + 1, length)]
        chooser.shuffle(cut)
        if cut:
            yield cut.pop()
            waiting.append(cut)
    yield from (piece for piece in chain.from_iterable(zip_longest(*waiting)) if piece is not None)
