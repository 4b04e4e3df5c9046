"""Which requests of a replay were cut by their engine's admission, so that they were not served as planned."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from quantgate_engine.counted import counted, plural


def degraded_requests(requests: pa.Table) -> pa.Table:
    """The rows (schema of the store) of requests that were cut so that they could run."""
    return requests.filter(requests["degraded"].is_valid())


def degraded_notes(requests: pa.Table) -> dict[str, str]:
    """For each arm some of whose requests were cut, one sentence with their number and what became of the first."""
    cut: dict[str, list[tuple[str, str]]] = {}
    rows = degraded_requests(requests).select(["arm_id", "request_id", "degraded"]).to_pylist()
    for row in rows:
        cut.setdefault(row["arm_id"], []).append((row["request_id"], row["degraded"]))
    totals = Counter(requests["arm_id"].to_pylist())
    return {
        arm_id: (
            f"{len(of_arm):,} of {counted(totals[arm_id], 'request')} {plural(len(of_arm), 'was', 'were')} cut by "
            f"admission (over_cap: degrade) and not served as planned; the first, {of_arm[0][0]}: {of_arm[0][1]}"
        )
        for arm_id, of_arm in cut.items()
    }
