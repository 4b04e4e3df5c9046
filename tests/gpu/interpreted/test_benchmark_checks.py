"""The checks of benchmarks/gpu.py over the interpreted kernels: they find them right, and a planted fault wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest
import torch
from benchmarks.on_gpu.check_attention import attention_checks, rotation_checks
from benchmarks.on_gpu.check_products import product_checks
from benchmarks.on_gpu.check_rows import row_checks
from benchmarks.on_gpu.checked import Check, check_all
from benchmarks.on_gpu.place import Place

from quantgate_kernels.gpu.device import INTERPRETER

CPU = Place(torch.device("cpu"), INTERPRETER, dry=False)

CHECKS = {
    "attention": lambda: islice(attention_checks(decodes=(1, 40), prompts=((20, 5),)), 0, None, 3),
    "rotation": lambda: islice(rotation_checks(rows=(3,)), 0, None, 2),
    "products": lambda: product_checks(rows=(2,), shapes=((20, 256),)),
    "rows": lambda: row_checks(rows=(2,), sizes=(64,), vocabulary=1500),
}


@pytest.mark.parametrize("name", CHECKS)
def test_the_kernels_are_right(name: str) -> None:
    found = check_all(CHECKS[name](), CPU)
    assert found
    assert [checked for checked in found if not checked.right] == []


def spoiled(checks: Iterator[Check]) -> Iterator[Check]:
    """The first of each kernel, with one number of its first result that is off by a fiftieth, or by a code."""
    kernels: set[str] = set()
    for check in checks:
        if check.kernel in kernels:
            continue
        kernels.add(check.kernel)

        def run(place: Place, own: Check = check) -> list[torch.Tensor]:
            results = [result.clone() for result in own.run(place)]
            first = results[0].view(-1)
            off = first.abs().argmax()
            first[off] = first[off] * 0.98 if first.is_floating_point() else first[off] - 1
            return results

        yield replace(check, run=run)


@pytest.mark.parametrize("name", CHECKS)
def test_one_wrong_number_is_found(name: str) -> None:
    found = check_all(spoiled(iter(CHECKS[name]())), CPU)
    assert len(found) >= 1
    assert [checked for checked in found if checked.right] == []
