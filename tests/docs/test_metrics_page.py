"""docs/metrics.md names every metric, and the page on results every table."""

from __future__ import annotations

from tests.docs.pages import read, words_in_code

from quantgate.metrics.registry import POOLED_METRICS, REQUEST_METRICS, STEP_METRICS
from quantgate.store.schemas import TABLES


def test_every_metric_stands_with_its_formula() -> None:
    assert {*REQUEST_METRICS, *POOLED_METRICS, *STEP_METRICS} <= set(words_in_code(read("docs/metrics.md")))


def test_every_table_of_a_run_is_described() -> None:
    assert {f"{name}.parquet" for name in TABLES} <= set(words_in_code(read("results/README.md")))
