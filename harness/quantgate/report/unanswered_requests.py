"""Requests that an arm did not answer, in words: how many, why most of them, and how the times beside count them."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from typing import Any

import numpy as np

from quantgate.metrics.endless_times import unanswered
from quantgate.report.numbers import count
from quantgate.report.run_view import ArmView, RunView
from quantgate_engine.counted import counted, plural

COUNTED_AS = "An unanswered request counts as infinitely slow in percentiles, as in the gate's rules."
_LONGEST_CAUSE = 240


def unanswered_requests(arm: ArmView) -> int:
    """How many requests got no answer (see `quantgate.metrics.endless_times.unanswered`)."""
    return int(np.count_nonzero(unanswered(arm.requests)))


def any_unanswered(view: RunView) -> bool:
    return any(unanswered_requests(arm) for arm in view.arms)


def unanswered_lines(view: RunView) -> list[str]:
    """One sentence per arm that left requests unanswered, with the commonest cause."""
    return [_line(arm) for arm in view.arms if unanswered_requests(arm)]


def _line(arm: ArmView) -> str:
    columns = ["request_id", "status", "abort_cause", "error"]
    rows = arm.requests.filter(unanswered(arm.requests)).select(columns).to_pylist()
    statuses = Counter(row["status"] for row in rows)
    cause, times = _commonest_cause(rows)
    how = ", ".join(f"{count(number)} {_WORDS.get(status, status)}" for status, number in statuses.most_common())
    return (
        f"{arm.arm_id}: {count(len(rows))} of {counted(arm.requests.num_rows, 'request')} "
        f"{plural(len(rows), 'was', 'were')} not answered ({how}); the commonest cause "
        f"({count(times)} of them): {textwrap.shorten(cause, _LONGEST_CAUSE).rstrip('.')}."
    )


def _commonest_cause(rows: list[dict[str, Any]]) -> tuple[str, int]:
    """As it was told of the first of those requests, with how many there are; only ids and numbers may differ."""
    told: dict[str, list[str]] = {}
    for row in rows:
        cause = str(row["error"] or row["abort_cause"] or "no cause was told")
        told.setdefault(re.sub(r"\d+", "", cause.replace(str(row["request_id"]), "")), []).append(cause)
    alike = max(told.values(), key=len)
    return alike[0], len(alike)


_WORDS = {"finished": "ended without a token"}
