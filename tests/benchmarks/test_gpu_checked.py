"""How benchmarks/gpu.py holds results against what they would be exactly, without any kernel."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
import torch
from benchmarks.on_gpu.checked import Check, Checked, check_all, near, same
from benchmarks.on_gpu.place import Place
from torch import Tensor

from quantgate_kernels.gpu.device import Device

CPU = Place(torch.device("cpu"), Device("sm90", 1), dry=False)
EXACT = torch.tensor([1.0, 100.0], dtype=torch.float64)


def checked(result: Tensor) -> Checked:
    """Within a hundredth and a tenth of a percent."""
    check = Check("kernel", "case", lambda _: [result], lambda found: [near("x", found[0], EXACT, 0.01, 0.001)])
    [found] = check_all([check], CPU)
    return found


def test_the_number_nearest_to_its_limit_is_shown_beside_the_largest_error() -> None:
    found = checked(torch.tensor([1.01, 100.05]))
    assert found.right is True
    assert found.numbers == 2
    assert found.largest_error == pytest.approx(0.05, rel=1e-3)
    assert (found.error, found.limit) == (pytest.approx(0.01, rel=1e-3), pytest.approx(0.011))


@pytest.mark.parametrize("wrong", [1.02, float("nan"), float("inf"), -1.0])
def test_one_number_beyond_its_limit_is_wrong(wrong: float) -> None:
    found = checked(torch.tensor([wrong, 100.0]))
    assert found.right is False
    assert json.loads(json.dumps(asdict(found), allow_nan=False))["right"] is False


def test_to_the_bit_is_to_the_bit() -> None:
    codes = torch.tensor([3, -4], dtype=torch.int8)
    for shift, right in ((0, True), (1, False)):
        check = Check("kernel", "case", lambda _, s=shift: [codes + s], lambda found: [same("codes", found[0], codes)])
        assert check_all([check], CPU)[0].right is right


def test_results_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"x: \(3,\) is not \(2,\)"):
        checked(torch.ones(3))
