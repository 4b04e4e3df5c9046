"""Prometheus' text format, as far as it is read here: plain samples, without buckets and quantiles."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

# Nine lines in ten of a busy server; left out before the text is parsed, which is slow.
_BUCKETS = re.compile(r"^\w[\w:]*_bucket\{.*\n?", re.MULTILINE)
_LEFT_OUT_SUFFIXES = ("_bucket", "_created")
_TOTAL = "_total"
_GROWING = frozenset({"counter", "histogram", "summary"})


@dataclass(frozen=True, slots=True)
class Sample:
    """name: as exported, but without `_total`. only_grows: its type says so, or its name where it has no type."""

    name: str
    labels: Mapping[str, str]
    value: float
    only_grows: bool


class ExpositionError(Exception):
    """The text is not in Prometheus' format."""


def read_samples(text: str) -> list[Sample]:
    """Raises ExpositionError. Values that are no finite number are left out."""
    try:
        families = list(text_string_to_metric_families(_BUCKETS.sub("", text)))
    # The parser trips over foreign text in ways that it does not name.
    except Exception as error:
        raise ExpositionError(f"not Prometheus' text format ({type(error).__name__})") from error
    return [
        Sample(
            sample.name.removesuffix(_TOTAL),
            sample.labels,
            float(sample.value),
            family.type in _GROWING or sample.name.endswith(_TOTAL),
        )
        for family in families
        for sample in family.samples
        if math.isfinite(sample.value)
        and not sample.name.endswith(_LEFT_OUT_SUFFIXES)
        and "quantile" not in sample.labels
    ]
