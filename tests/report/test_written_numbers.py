"""Numbers as the report writes them."""

from __future__ import annotations

import pytest

from quantgate.report.estimates import Estimate
from quantgate.report.numbers import in_unit, limits, milliseconds, signed_percent, significant, size, with_interval


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"), (0.012345, "0.0123"), (1.2345, "1.23"), (12.345, "12.3"), (123.45, "123"), (1234567.0, "1,234,567"),
        (-0.5, "-0.500"), (1.5e-9, "1.50e-09"), (float("inf"), "∞"), (float("nan"), "–"), (None, "–"),
    ],
)  # fmt: skip
def test_three_significant_digits(value: float | None, written: str) -> None:
    assert significant(value) == written


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (12.345, "ms", "12.3\u00a0ms"), (12_345.0, "ms", "12.3\u00a0s"), (0.1, "ratio", "10.0\u00a0%"),
        (0.02, "pp", "2.00\u00a0pp"),
        (134_500_000, "bytes", "134\u00a0MB"),
        (0.01, "nats", "0.0100\u00a0nats"), (None, "pp", "–"), (3.0, "", "3.00"),
    ],
)  # fmt: skip
def test_units_of_the_gate(value: float | None, unit: str, written: str) -> None:
    assert in_unit(value, unit) == written


def test_sizes_and_signs() -> None:
    assert [size(n) for n in (512, 2_000, 1_300_000_000, None)] == ["512\u00a0B", "2.00\u00a0kB", "1.30\u00a0GB", "–"]
    assert [signed_percent(x) for x in (0.1, -0.1, 0.0)] == ["+10.0\u00a0%", "-10.0\u00a0%", "0\u00a0%"]


def test_an_interval_is_written_only_where_there_is_one() -> None:
    assert with_interval(Estimate(10.0, 9.0, 11.0, 100), milliseconds) == "10.0\u00a0ms [9.00 to 11.0\u00a0ms]"
    assert with_interval(Estimate(10.0, None, None, 3), milliseconds) == "10.0\u00a0ms"
    assert with_interval(None, milliseconds) == "–"


def test_limits_share_a_unit_and_may_be_unbounded() -> None:
    assert limits(None, 2.0, milliseconds) == "[-∞ to 2.00\u00a0ms]"
    assert limits(1.0, None, milliseconds) == "[1.00\u00a0ms to ∞]"
    assert limits(900.0, 2e6, size) == "[900\u00a0B to 2.00\u00a0MB]"
