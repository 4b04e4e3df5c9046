"""States of several engines behind a router (pools), added up.

A row of the step log holds the queues and the cache of the one pool whose step it was. Between two of its steps a pool
stays as the first of them left it, for as long as it has work: where the second decodes, or finds more in the cache
than it puts there itself, or where the first left requests waiting. Else it was idle in between, as it is after its
last step of a turn. The log does not tell what an idle pool keeps for sessions, so that the totals leave it out.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quantgate.metrics.columns import floats, is_equal
from quantgate.metrics.definition import FloatArray


def pool_names(steps: pa.Table) -> list[str]:
    """Names of the pools whose steps these are; none where one engine served everything."""
    return sorted(str(name) for name in steps.column("pool").unique().to_pylist() if name is not None)


def over_pools(steps: pa.Table, states: FloatArray) -> FloatArray:
    """`states` [n], each that of its row's own pool, as the sum over all pools at each step [n].

    `steps` are those of one arm. Without pools `states` are returned as they are.
    """
    pools = pool_names(steps)
    if not pools:
        return states
    order, turn_starts = _in_order_of_turns(steps)
    ordered = states[order]
    totals = np.zeros(len(states))
    for pool in pools:
        mine = is_equal(steps, "pool", pool)[order]
        latest = np.maximum.accumulate(np.where(mine, np.arange(len(mine)), -1))
        known = latest >= turn_starts
        works_on = _works_on(steps.take(order), mine, turn_starts)
        holds = known & (mine | works_on[latest])
        totals += np.where(holds, ordered[latest], 0.0)
    result = np.empty(len(states))
    result[order] = totals
    return result


def _in_order_of_turns(steps: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows in order of time, turn by turn of the arm, and for each of them where its turn begins in that order."""
    passes, blocks = floats(steps, "pass_index"), floats(steps, "block_index")
    order = np.lexsort((floats(steps, "step_index"), blocks, passes))
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (np.diff(passes[order]) != 0) | (np.diff(blocks[order]) != 0)
    return order, np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))


def _works_on(ordered: pa.Table, mine: NDArray[np.bool_], turn_starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each of the pool's rows, whether it has work until its next row in the same turn; False for other rows."""
    rows = np.flatnonzero(mine)
    before, after = rows[:-1], rows[1:]
    put_there = floats(ordered, "prefill_tokens") + floats(ordered, "cached_prompt_tokens")
    found = (floats(ordered, "decode_tokens") > 0) | (floats(ordered, "kv_cache_used_tokens") > put_there)
    waiting = floats(ordered, "waiting_requests") > 0
    works_on = np.zeros(len(mine), dtype=bool)
    works_on[before] = (turn_starts[before] == turn_starts[after]) & (found[after] | waiting[before])
    return works_on
