"""Numbers as the report writes them."""

from __future__ import annotations

import pytest

from quantgate.report.estimates import Estimate
from quantgate.report.numbers import in_unit, milliseconds, signed_percent, significant, size, with_interval


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
        (12.345, "ms", "12.3 ms"), (0.1, "ratio", "10.0 %"), (0.02, "pp", "2.00 pp"), (134_500_000, "bytes", "134 MB"),
        (0.01, "nats", "0.0100 nats"), (None, "pp", "–"), (3.0, "", "3.00"),
    ],
)  # fmt: skip
def test_units_of_the_gate(value: float | None, unit: str, written: str) -> None:
    assert in_unit(value, unit) == written


def test_sizes_and_signs() -> None:
    assert [size(n) for n in (512, 2_000, 1_300_000_000, None)] == ["512 B", "2.00 kB", "1.30 GB", "–"]
    assert [signed_percent(x) for x in (0.1, -0.1, 0.0)] == ["+10.0 %", "-10.0 %", "0 %"]


def test_an_interval_is_written_only_where_there_is_one() -> None:
    assert with_interval(Estimate(10.0, 9.0, 11.0, 100), milliseconds) == "10.0 ms [9.00 ms to 11.0 ms]"
    assert with_interval(Estimate(10.0, None, None, 3), milliseconds) == "10.0 ms"
    assert with_interval(None, milliseconds) == "–"
