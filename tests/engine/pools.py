"""Routers over simulated pools for the tests of this area."""

from __future__ import annotations

from typing import Any

from tests.engine.simulation import prompt

from quantgate_engine.clock import VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.simulated import StepCosts
from quantgate_engine.request import Request
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.router.settings import PoolRule, PoolSettings, RouterSettings, TokenRange
from quantgate_engine.router.simulated import RouterSimulation, SimulatedRouter
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.step_result import StepResult

COSTS = StepCosts(base_ns=1000, per_prefill_token_ns=10, per_decode_request_ns=100)


def engine(**changes: Any) -> EngineConfig:
    """A small engine, unless `changes` say otherwise."""
    fields = {"max_active_requests": 2, "max_step_tokens": 8, "block_size": 4, "num_kv_blocks": 64}
    return EngineConfig(**(fields | {"max_context_tokens": 256} | changes))


def fast(name: str = "fast", **changes: Any) -> PoolSettings:
    """Takes interactive requests with up to 16 prompt tokens."""
    rule = PoolRule(slo_classes=("interactive",), prompt_tokens=TokenRange(most=16))
    return PoolSettings(**({"name": name, "engine": engine(), "rule": rule} | changes))


def bulk(name: str = "bulk", **changes: Any) -> PoolSettings:
    """Takes whatever comes."""
    return PoolSettings(**({"name": name, "engine": engine(max_active_requests=8, max_step_tokens=64)} | changes))


class Pools:
    """A simulated router with its clock in reach, and the ends of its requests in order."""

    def __init__(
        self, *pools: PoolSettings, settings: RouterSettings | None = None, shared_device: bool = True
    ) -> None:
        self.clock = VirtualClock()
        router = SimulatedRouter(pools, settings, clock=self.clock, costs=COSTS, shared_device=shared_device)
        self.core = router.core
        self._time = RouterSimulation(router, self.clock)
        self.ended: list[Request] = []

    def add(self, name: str, length: int = 4, max_tokens: int = 4, **terms: Any) -> str | None:
        """The pool that a new request goes to; None where no pool takes it."""
        self.core.add_request(name, prompt(length), SamplingParams(max_tokens=max_tokens), RequestTerms(**terms))
        return self.core.pool_of(name)

    def run(self) -> list[StepResult]:
        return self._note(self._time.run())

    def run_until(self, at_ns: int) -> list[StepResult]:
        return self._note(self._time.run_until(at_ns))

    def run_for(self, duration_ns: int) -> list[StepResult]:
        return self.run_until(self.clock.now_ns() + duration_ns)

    def _note(self, results: list[StepResult]) -> list[StepResult]:
        self.core.check_integrity()
        self.ended.extend(request for result in results for request in result.ended)
        return results
