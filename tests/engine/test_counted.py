"""Numbers stand before the right form of their noun."""

from __future__ import annotations

import pytest

from quantgate_engine.counted import counted, plural


@pytest.mark.parametrize(
    ("number", "written"),
    [(0, "0 prompt tokens"), (1, "1 prompt token"), (2, "2 prompt tokens"), (12_345, "12,345 prompt tokens")],
)
def test_one_is_singular_and_every_other_number_is_not(number: int, written: str) -> None:
    assert counted(number, "prompt token") == written


def test_some_plurals_and_verbs_take_more_than_an_s() -> None:
    assert [counted(number, "reply", "replies") for number in (1, 2)] == ["1 reply", "2 replies"]
    assert [plural(number, "was", "were") for number in (0, 1, 2)] == ["were", "was", "were"]
