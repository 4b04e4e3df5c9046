"""Everything that keeps account of an engine's live requests, made together and replaced together."""

from __future__ import annotations

from quantgate_engine.clock import Clock
from quantgate_engine.computation import Computation
from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.base import Executor
from quantgate_engine.kv.kv_manager import KVManager
from quantgate_engine.kv.sharing import PrefixSharing
from quantgate_engine.live_requests import LiveRequests
from quantgate_engine.request import Request
from quantgate_engine.scheduler.admission.admission import Admission
from quantgate_engine.scheduler.admission.caps import Caps
from quantgate_engine.scheduler.scheduler import Scheduler


class EngineBooks:
    """The cache's books, admission, the queues, and the ways in and out, over the same `requests` by id.

    New ones begin with an empty cache and no queue.
    """

    def __init__(
        self, executor: Executor, config: EngineConfig, clock: Clock, requests: dict[str, Request], caps: Caps
    ) -> None:
        self.kv = KVManager(
            executor.num_blocks,
            executor.block_size,
            config.cache,
            executor.cache_identity,
            config.preemption.host_blocks,
        )
        self.sharing = PrefixSharing(self.kv, requests, by_prefix=config.cache.prefix_sharing)
        self.admission = Admission(config.admission, caps, self.kv, self.sharing, executor.vocab_size)
        self.scheduler = Scheduler(config, self.kv, self.sharing, self.admission)
        self.live = LiveRequests(requests, config, clock, self.scheduler, self.admission, self.kv, self.sharing)
        self.computation = Computation(executor, clock, requests, self.live, self.scheduler, self.sharing)
