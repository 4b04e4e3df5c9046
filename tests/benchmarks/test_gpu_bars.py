"""The bars of benchmarks/gpu.py: which rows they are about, and the least of them."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.on_gpu.bars import Bar, bars
from benchmarks.on_gpu.llama import PRODUCTS
from benchmarks.on_gpu.names import DECODE, PREFILL, W4A16, W8A16, shape_name

BANDWIDTH = 1e12


def row(kernel: str, shape: str, megabytes: float, micros: float | None, torch_micros: float | None) -> dict[str, Any]:
    return {
        "kernel": kernel,
        "shape": shape,
        "bytes": megabytes * 1e6,
        "seconds": micros and micros / 1e6,
        "torch_seconds": torch_micros and torch_micros / 1e6,
    }


def layer(rows: int, micros: float, kernel: str = W4A16) -> list[dict[str, Any]]:
    """One of the products takes all the bytes and most of the time."""
    weights = [97.0, 1.0, 1.0, 1.0]
    times = [micros - 3, 1.0, 1.0, 1.0]
    return [
        row(kernel, shape_name(product, rows), size, time, 3 * time)
        for product, size, time in zip(PRODUCTS, weights, times, strict=True)
    ]


def by_start(found: list[Bar], start: str) -> Bar:
    [bar] = [bar for bar in found if bar.name.startswith(start)]
    return bar


def test_a_layers_products_count_together_and_the_worst_number_of_rows_decides() -> None:
    timed = [*layer(1, 125.0), *layer(16, 160.0), *layer(1, 1000.0, W8A16), *layer(2, 400.0)[:3]]
    found = bars(timed, BANDWIDTH)
    share = by_start(found, "W4A16, 1 to 16")
    # 100 MB in 125 and 160 microseconds: 0.8 and 0.625 of 1 TB/s. Of two rows one product is missing.
    assert (share.found, share.least_at, share.of, share.met) == (pytest.approx(0.625), "16 rows", 2, False)
    times = by_start(found, "W4A16, 1 row,")
    assert (times.found, times.met) == (pytest.approx(3), True)


def test_attention_is_judged_for_each_form_of_keys_and_values() -> None:
    timed = [
        row(DECODE, "1 x 4096, float16 KV", 10, 20, None),
        row(DECODE, "16 x 2048, float16 KV", 100, 125, None),
        row(DECODE, "16 x 2048, int8 KV", 50, 62.5, None),
        row(PREFILL, "1 x 2048 after 0, float16 KV", 10, 100, 50),
        row(PREFILL, "1 x 2048 after 6144, float16 KV", 10, 100, None),
    ]
    found = bars(timed, BANDWIDTH)
    halves, codes = by_start(found, "decode attention, float16"), by_start(found, "decode attention, int8")
    assert (halves.found, halves.least_at, halves.met) == (pytest.approx(0.5), "1 x 4096, float16 KV", False)
    assert (codes.found, codes.met) == (pytest.approx(0.8), True)
    prompts = by_start(found, "prefill attention, float16")
    assert (prompts.found, prompts.of, prompts.met) == (pytest.approx(0.5), 1, False)
    assert by_start(found, "prefill attention, int8").met is None


def test_nothing_is_judged_that_was_not_measured() -> None:
    timed = [row(DECODE, "1 x 4096, float16 KV", 10, None, None), *layer(1, 125.0)]
    assert all(bar.met is None for bar in bars([timed[0]], BANDWIDTH))
    without_limits = bars(timed, None)
    assert by_start(without_limits, "W4A16, 1 to 16").met is None
    assert by_start(without_limits, "W4A16, 1 row,").met is True
