"""What a device does at most: counts that are right, samples that end, and the better of two measurements.

Nothing here says how fast a machine is: clocks are played, and of the real one only what holds everywhere is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip

from quantgate_kernels import device_limits
from quantgate_kernels.cpu.probes import PIECES_PER_THREAD, Probes
from quantgate_kernels.device_limits import (
    LONGEST_S,
    SAMPLES,
    SIDES,
    best_of,
    fastest_seconds,
    measure_device_limits,
    product_rate,
    rates_of_torch,
)
from quantgate_kernels.roofline import Width
from quantgate_kernels.unavailable import KernelSetUnavailableError

LANES = 16
SLOWER = {"read_bytes_per_s": 10.0, "matmul_ops_per_s": 20.0, "int8_ops_per_s": None, "float32_ops_per_s": 5.0}


class PlayedClock:
    """Time goes on only when somebody works."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def lasting(self, seconds: Iterator[float] | float) -> Callable[[], None]:
        def work() -> None:
            self.now += seconds if isinstance(seconds, float) else next(seconds)

        return work


@pytest.fixture(scope="module")
def probes() -> Probes:
    kernel_set_or_skip("cpu")
    return Probes()


def test_the_better_measurement_of_each_limit_counts_and_is_named() -> None:
    faster = {"read_bytes_per_s": 9.0, "matmul_ops_per_s": 21.0, "int8_ops_per_s": 40.0, "float32_ops_per_s": None}
    limits = best_of({"torch": SLOWER, "cpp": faster}, threads=3)
    assert (limits.read_bytes_per_s, limits.matmul_ops_per_s) == (10.0, 21.0)
    assert (limits.int8_ops_per_s, limits.float32_ops_per_s, limits.threads) == (40.0, 5.0, 3)
    assert limits.measured_by == {
        "read_bytes_per_s": "torch", "matmul_ops_per_s": "cpp", "int8_ops_per_s": "cpp", "float32_ops_per_s": "torch",
    }  # fmt: skip


def test_a_limit_that_nobody_measured_is_none_where_a_cpu_may_lack_it_and_else_an_error() -> None:
    limits = best_of({"torch": SLOWER}, threads=1)
    assert limits.int8_ops_per_s is None
    assert limits.ops_per_s("int8") is None
    assert (limits.ops_per_s("16-bit"), limits.ops_per_s("float32")) == (20.0, 5.0)
    with pytest.raises(ValueError, match="nobody measured float32_ops_per_s"):
        best_of({"torch": SLOWER | {"float32_ops_per_s": None}}, threads=1)


def test_the_fastest_of_a_few_samples_counts() -> None:
    clock = PlayedClock()
    times = iter([0.005, 0.002, 0.009] + [0.004] * SAMPLES)
    assert fastest_seconds(clock.lasting(times), clock) == pytest.approx(0.002)
    assert len(list(times)) == 3


def test_slow_work_is_sampled_once() -> None:
    clock = PlayedClock()
    assert fastest_seconds(clock.lasting(iter([2 * LONGEST_S])), clock) == pytest.approx(2 * LONGEST_S)


@pytest.mark.parametrize(("speed", "sides"), [(1e12, list(SIDES)), (1e9, [SIDES[0]])], ids=["fast", "slow"])
def test_products_count_two_operations_a_multiply_add_and_large_ones_wait_for_a_fast_device(
    speed: float, sides: list[int]
) -> None:
    clock, asked = PlayedClock(), []

    def product(side: int) -> Callable[[], None]:
        asked.append(side)
        return clock.lasting(2 * side**3 / speed)

    assert product_rate(product, clock) == pytest.approx(speed)
    assert asked == sides


def test_a_product_that_torch_does_not_have_is_no_limit() -> None:
    def absent(_side: int) -> Callable[[], None]:
        raise RuntimeError("not implemented for 'Char'")

    def small_only(side: int) -> Callable[[], None]:
        if side > SIDES[0]:
            raise RuntimeError("too large")
        return clock.lasting(1e-6)

    clock = PlayedClock()
    assert product_rate(absent, clock) is None
    assert product_rate(small_only, clock) == pytest.approx(2 * SIDES[0] ** 3 / 1e-6)


def test_torchs_rates_count_bytes_and_operations() -> None:
    """Each look at this clock is a second later, so that every sample takes one second and is the only one."""
    seconds = iter(range(1000))
    rates = rates_of_torch(torch.ones(1000), lambda: float(next(seconds)))
    operations = 2.0 * SIDES[0] ** 3
    assert (rates["read_bytes_per_s"], rates["matmul_ops_per_s"]) == (4000.0, operations)
    assert rates["float32_ops_per_s"] == operations
    assert rates["int8_ops_per_s"] in (operations, None)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("width", ["float32", "16-bit", "int8"])
def test_a_probe_counts_the_multiply_adds_that_it_made(probes: Probes, width: Width, threads: int) -> None:
    """The sums of its loops are the count: twice the rounds must give twice the sums, and every lane the same."""
    few, many = (probes.multiply(width, threads, rounds) for rounds in (50, 100))
    assert many.amount == 2 * few.amount
    assert few.amount % (2 * PIECES_PER_THREAD * threads * 50 * LANES) == 0
    assert few.seconds > 0 or few.amount == 0
    assert (few.rate is None) == (few.amount == 0)
    if width != "int8":
        assert few.amount > 0


def test_dot_products_make_a_multiply_add_for_each_number_of_a_lane(probes: Probes) -> None:
    plain, pairs, quads = (probes.multiply(width, 1, 100).amount for width in ("float32", "16-bit", "int8"))
    assert pairs in (plain, 2 * plain)
    assert quads in (0, 4 * plain)


def test_counts_are_exact_to_the_rounds_that_are_used(probes: Probes) -> None:
    for width in ("float32", "16-bit", "int8"):
        assert probes.multiply(width, 1).amount == 1000 * probes.multiply(width, 1, 100).amount


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("numbers", [1, 15, 129, 262_144, 3 * 262_144 + 77])
def test_every_number_of_the_memory_is_read_once(probes: Probes, numbers: int, threads: int) -> None:
    assert probes.read(torch.ones(numbers), threads).amount == 4 * numbers
    some_zeros = torch.ones(numbers)
    some_zeros[::3] = 0
    assert probes.read(some_zeros, threads).amount == 4 * int(some_zeros.sum())


@pytest.mark.parametrize("compiled", [True, False])
def test_a_measured_device_has_limits_that_are_positive_and_finite(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiled:
        kernel_set_or_skip("cpu")
    else:

        def unavailable() -> Probes:
            raise KernelSetUnavailableError("no C++ compiler was found")

        monkeypatch.setattr(device_limits, "Probes", unavailable)
    monkeypatch.setattr(device_limits, "READ_BYTES", 1 << 20)
    before = torch.get_num_threads()
    limits = measure_device_limits(threads=1)
    assert torch.get_num_threads() == before
    assert limits.threads == 1
    for width in ("16-bit", "float32"):
        rate = limits.ops_per_s(width)
        assert rate is not None
        assert math.isfinite(rate)
        assert rate > 0
    assert 0 < limits.read_bytes_per_s < math.inf
    assert limits.int8_ops_per_s is None or 0 < limits.int8_ops_per_s < math.inf
    assert set(limits.measured_by.values()) <= ({"cpp", "torch"} if compiled else {"torch"})
    assert measure_device_limits().threads == before
