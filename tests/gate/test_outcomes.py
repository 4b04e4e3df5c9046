"""Outcomes, combinations and exit codes: every case."""

from __future__ import annotations

from itertools import product

import pytest

from quantgate.gate.exit_codes import exit_code, overall
from quantgate.gate.margin import Margin, parse_margin
from quantgate.gate.outcome import all_of, any_of, gain_outcome, loss_outcome
from quantgate.gate.verdict_model import Outcome, VerdictWord
from quantgate.stats.interval import Interval


@pytest.mark.parametrize(
    ("lower", "upper", "loss", "gain"),
    [
        (-0.2, -0.1, "pass", "fail"),
        (-0.1, 0.05, "pass", "fail"),
        (0.05, 0.1, "inconclusive", "inconclusive"),
        (0.05, 0.2, "inconclusive", "inconclusive"),
        (0.1, 0.2, "inconclusive", "pass"),
        (0.1, 0.1, "inconclusive", "pass"),
        (0.11, 0.2, "fail", "pass"),
    ],
)
def test_an_interval_against_a_limit_of_a_tenth(lower: float, upper: float, loss: Outcome, gain: Outcome) -> None:
    assert loss_outcome(Interval(lower, upper), 0.1) == loss
    assert gain_outcome(Interval(lower, upper), 0.1) == gain


OUTCOMES: tuple[Outcome, ...] = ("pass", "fail", "inconclusive", "uninformative")


@pytest.mark.parametrize("pair", list(product(OUTCOMES, repeat=2)))
def test_any_and_all_over_every_pair(pair: tuple[Outcome, Outcome]) -> None:
    expected_any = "pass" if "pass" in pair else "fail" if pair == ("fail", "fail") else "inconclusive"
    expected_all = "fail" if "fail" in pair else "pass" if pair == ("pass", "pass") else "inconclusive"
    assert any_of(pair) == expected_any
    assert all_of(pair) == expected_all


CODES: dict[VerdictWord, int] = {"ship": 0, "do_not_ship": 1, "invalid": 3, "not_enough_evidence": 4}


@pytest.mark.parametrize("words", list(product(CODES, repeat=3)))
def test_over_arms_the_first_of_the_documented_order_applies(words: tuple[VerdictWord, ...]) -> None:
    present = {CODES[word] for word in words}
    expected = next(code for code in (2, 3, 5, 1, 4, 0) if code in present)
    assert exit_code(words) == expected
    assert CODES[overall(words)] == expected


def test_no_arm_is_no_verdict() -> None:
    with pytest.raises(ValueError, match="no arm"):
        overall([])


LATENCY_UNITS = {"%": "ratio", "ms": "ms", "": "ms"}


@pytest.mark.parametrize(
    ("written", "margin"),
    [
        ("10%", Margin(0.1, "ratio")),
        (" 2.5 % ", Margin(0.025, "ratio")),
        ("15ms", Margin(15.0, "ms")),
        (15, Margin(15.0, "ms")),
        (".5", Margin(0.5, "ms")),
    ],
)
def test_margins_as_written(written: str | float, margin: Margin) -> None:
    assert parse_margin(written, LATENCY_UNITS) == pytest.approx(margin)


@pytest.mark.parametrize("written", ["2pp", "ten", "-3ms", "10 %%", "", "1e3", "nan", "inf"])
def test_what_does_not_fit_is_refused_with_what_was_expected(written: str) -> None:
    with pytest.raises(ValueError, match="expected a relative margin such as 10% or milliseconds"):
        parse_margin(written, LATENCY_UNITS)


@pytest.mark.parametrize("written", ["0%", 0, "0.0ms"])
def test_a_margin_of_nothing_is_refused(written: str | float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        parse_margin(written, LATENCY_UNITS)
