"""Which kinds of failure an arm's requests had."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from quantgate.metrics.failed import FAILED

_KINDS_SHOWN = 3
_MOST_TELLING_FIRST = ("error_kind", "abort_cause", "status")


def failures_by_kind(arm_id: str, requests: pa.Table) -> str:
    """A sentence with the commonest kinds and their counts; empty where nothing failed.

    Planned disconnects do not count.
    """
    values = FAILED(requests)
    failed = requests.take(np.flatnonzero(values == 1)).select(_MOST_TELLING_FIRST).to_pylist()
    kinds = Counter(next(row[name] for name in _MOST_TELLING_FIRST if row[name] is not None) for row in failed)
    listed = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common(_KINDS_SHOWN))
    return f"{arm_id}: {len(failed):,} of {np.isfinite(values).sum():,} failed: {listed}." if failed else ""
