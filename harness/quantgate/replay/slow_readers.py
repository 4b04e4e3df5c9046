"""Which arms were read by slow clients, and what their requests count for."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from quantgate_engine.counted import counted, plural


def slow_reader_notes(requests: pa.Table) -> dict[str, str]:
    """A sentence for each arm that had slow readers."""
    read_slowly = requests.filter(pc.is_valid(requests["read_tokens_per_s"]))
    slow = Counter(str(arm_id) for arm_id in read_slowly["arm_id"].to_pylist())
    totals = Counter(requests["arm_id"].to_pylist())
    return {
        arm_id: (
            f"{number:,} of {counted(totals[arm_id], 'request')} {plural(number, 'was', 'were')} read slowly by plan "
            "(read_tokens_per_s): TTFT counts them; TPOT, gaps between tokens and E2E, which are their clients' own, "
            "do not"
        )
        for arm_id, number in slow.items()
    }
