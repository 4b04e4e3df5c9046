"""Rows of the quality table in its long format: one row per arm, item and metric."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pyarrow as pa

from quantgate.store.schemas import QUALITY

Tier = Literal["distribution", "task", "behaviour"]


@dataclass(frozen=True, slots=True)
class QualityRow:
    """One measured value; the fields are the columns of `quantgate.store.schemas.QUALITY`."""

    arm_id: str
    tier: Tier
    task: str
    item_id: str
    cluster_id: str
    metric: str
    value: float
    floor: float | None = None
    output_text: str | None = None
    expected_text: str | None = None
    detail: str | None = None


def detail_json(values: Mapping[str, Any]) -> str:
    """The `detail` column's text: one JSON object, keys sorted so that equal details are equal strings."""
    return json.dumps(values, sort_keys=True, ensure_ascii=False)


def quality_table(rows: Iterable[QualityRow]) -> pa.Table:
    """The rows as an Arrow table of the store's schema."""
    return pa.Table.from_pylist([asdict(row) for row in rows], schema=QUALITY)
