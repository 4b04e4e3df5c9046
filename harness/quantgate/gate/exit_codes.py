"""The exit code of a verdict, and of several."""

from __future__ import annotations

from collections.abc import Iterable

from quantgate.gate.verdict_model import VerdictWord

EXIT_CODES: dict[VerdictWord, int] = {"ship": 0, "do_not_ship": 1, "invalid": 3, "not_enough_evidence": 4}
_FIRST_THAT_APPLIES: tuple[VerdictWord, ...] = ("invalid", "do_not_ship", "not_enough_evidence", "ship")
"""The order 3, 1, 4, 0; codes 2 and 5 are errors, which end a command before there is a verdict."""


def overall(verdicts: Iterable[VerdictWord]) -> VerdictWord:
    """The verdict of a run over its arms. Raises ValueError where there is none."""
    seen = set(verdicts)
    if not seen:
        raise ValueError("no arm was judged")
    return next(word for word in _FIRST_THAT_APPLIES if word in seen)


def exit_code(verdicts: Iterable[VerdictWord]) -> int:
    """Over arms the first of 2, 3, 5, 1, 4, 0 that applies."""
    return EXIT_CODES[overall(verdicts)]
