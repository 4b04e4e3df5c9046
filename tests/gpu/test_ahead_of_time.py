"""Every kernel in every configuration, compiled for GPUs that are not here: what its machine code must be like."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from tests.gpu.triton_processes import TRITONS, run_python

from quantgate_kernels.gpu.launch_table import ARCHITECTURES, SHARED_MEMORY

LEAST_WIDE_SHARE = 0.6

_SMALL = {"sm80": "HMMA", "sm90": "HMMA", "sm100": "HMMA", "gfx942": "v_mfma"}
_LARGE = {"sm80": "HMMA", "sm90": "HGMMA", "sm100": "UTCHMMA", "gfx942": "v_mfma"}
"""The instructions of whole warp groups take 64 rows and more, or 64 outputs where weights are the left factor."""

_CODES = {"sm80": "IMMA", "sm90": "IGMMA", "sm100": ("UTCIMMA", "IMMA"), "gfx942": "v_mfma_i32"}
"""On sm100, Triton 3.6 has none of whole warp groups for codes."""

MATRIX_KERNELS = {
    "decode_attention_kernel": _SMALL,
    "prefill_attention_kernel": _LARGE,
    "linear_words_kernel": _LARGE,
    "linear_int8_kernel": _CODES,
}
"""Kernels with matrix products, each with the instruction that has to do them."""

pytestmark = [
    pytest.mark.parametrize("triton", TRITONS),
    pytest.mark.parametrize("architecture", ARCHITECTURES),
]


@dataclass(frozen=True)
class Row:
    """A kernel of a case, as `quantgate_kernels.gpu.ahead` writes it."""

    kernel: str
    case: str
    variant: str
    facts: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.kernel} ({self.case}): {self.facts}"

    @property
    def wide_share(self) -> float:
        by_width = self.facts["load_bytes"]
        return by_width.get("16", 0) / max(1, sum(by_width.values()))


@cache
def compiled(architecture: str, triton: str) -> list[Row]:
    finished = run_python(["-m", "quantgate_kernels.gpu.ahead", architecture], triton)
    if finished.returncode:
        pytest.fail(f"{architecture}, Triton {triton}: {finished.stderr[-6000:]}", pytrace=False)
    lines = map(json.loads, finished.stdout.splitlines())
    return [Row(line["kernel"], line["case"], line["variant"], line["facts"]) for line in lines if "kernel" in line]


def assert_none(wrong: list[Row], what: str) -> None:
    assert not wrong, f"{what}:\n" + "\n".join(map(str, wrong))


def test_no_kernel_spills(architecture: str, triton: str) -> None:
    rows = compiled(architecture, triton)
    assert_none([row for row in rows if row.facts["spills"]], "registers are spilled")


def test_shared_memory_fits(architecture: str, triton: str) -> None:
    rows = compiled(architecture, triton)
    assert_none([row for row in rows if row.facts["shared_bytes"] > SHARED_MEMORY[architecture]], "too much memory")


def test_products_use_matrix_instructions(architecture: str, triton: str) -> None:
    rows = [row for row in compiled(architecture, triton) if row.kernel in MATRIX_KERNELS]
    assert {row.kernel for row in rows} == set(MATRIX_KERNELS)
    wrong = [
        row for row in rows
        if not any(name.startswith(MATRIX_KERNELS[row.kernel][architecture]) for name in row.facts["matrix"])
    ]  # fmt: skip
    assert_none(wrong, "no matrix instructions")


def test_memory_is_read_sixteen_bytes_at_a_time(architecture: str, triton: str) -> None:
    rows = [row for row in compiled(architecture, triton) if row.kernel in MATRIX_KERNELS]
    assert_none([row for row in rows if row.wide_share < LEAST_WIDE_SHARE], "narrow loads")
