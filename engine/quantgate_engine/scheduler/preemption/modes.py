"""What becomes of the blocks of a request that gives way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from quantgate_engine.kv.block_table import KVUsage
from quantgate_engine.kv.kv_manager import KVManager
from quantgate_engine.request import Request
from quantgate_engine.scheduler.preemption.settings import PreemptionModeName

PreemptionMode = Callable[[Request, KVManager, int], KVUsage]
"""(request, books, now in ns) -> what the request has used since it was let in; its blocks are released."""


def recompute(request: Request, kv: KVManager, now_ns: int) -> KVUsage:
    """Drops the blocks: everything is computed again, but for what the prefix cache still has when the turn comes."""
    request.lose_computed()
    return kv.release(request.request_id, now_ns)


def swap(request: Request, kv: KVManager, now_ns: int) -> KVUsage:
    """Moves the blocks to host memory; recomputes where nothing was computed yet or the host has no room."""
    usage = kv.swap_out(request.request_id, request.num_computed_tokens, now_ns)
    return usage if usage is not None else recompute(request, kv, now_ns)


PREEMPTION_MODES: Mapping[PreemptionModeName, PreemptionMode] = MappingProxyType({"recompute": recompute, "swap": swap})
