"""Two ways to replay a setup: on the real engine in real time, and on the simulated one on a virtual clock."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.practice_runs import ReplaySetup
from benchmarks.practice_setups import Setup
from benchmarks.practice_traffic import draw_plan

from quantgate.replay.arms import ReplayArm
from quantgate.replay.precise_timers import precise_loop
from quantgate.replay.replay_log import CellResult, ReplayLog
from quantgate.replay.run_replay import ReplayOptions, run_replay
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.base import Target
from quantgate.targets.bundled_engine import BundledEngineTarget
from quantgate.targets.simulated import SimulatedTarget
from quantgate_engine import LLM
from quantgate_engine.clock import Clock, MonotonicClock, VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.simulated import StepCosts
from quantgate_engine.router.pool import Pool
from quantgate_engine.router.router_core import RouterCore
from quantgate_engine.router.simulated import SimulatedRouter

COSTS_FILE = Path(__file__).with_name("step_costs.json")
"""As `practice_costs.py` wrote it: the costs of the machine that the published tables are from."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What setups are replayed on; description: for the results. several_devices: whether pools can have one each."""

    replay: ReplaySetup
    description: Mapping[str, Any]
    several_devices: bool


def simulated_machine(costs: StepCosts, origin: Mapping[str, Any]) -> Machine:
    """Replays on the virtual clock: for the same costs the same figures everywhere.

    origin: the document that the costs are from; `fitted_to` says in words what they are the costs of.
    """

    def replay(setup: Setup) -> CellResult:
        async def main(clock: VirtualClock) -> CellResult:
            router = SimulatedRouter(
                setup.pools, setup.router, clock=clock, costs=costs, shared_device=setup.shared_device
            )
            return await _replay(setup, SimulatedTarget(clock, router=router), clock, warmup_requests=0)

        return run_in_virtual_time(main)

    measured_on = f"simulated, with the step costs of {origin['fitted_to']}"
    return Machine(replay, {"measured_on": measured_on, "step_costs": origin}, several_devices=True)


def torch_machine(model: str, scheme: str, threads: int | None) -> Machine:
    """Replays in real time. The model is loaded once; each replay has engines of its own over its weights."""
    clock = MonotonicClock()
    llm = LLM(model, scheme, EngineConfig(threads=threads, num_kv_blocks=1), clock=clock)

    def replay(setup: Setup) -> CellResult:
        gc.collect()  # So that the caches of the replay before give their memory back first.
        pools = [Pool(pool, llm.engine_beside(pool.engine)) for pool in setup.pools]
        target = BundledEngineTarget(llm, core=RouterCore(pools, setup.router), arm_id="engine", role="baseline")
        with asyncio.Runner(loop_factory=precise_loop) as runner:
            return runner.run(_replay(setup, target, clock, warmup_requests=4))

    return Machine(replay, {"measured_on": f"{llm.info.name}, {llm.info.scheme}, in real time"}, several_devices=False)


async def _replay(setup: Setup, target: Target, clock: Clock, *, warmup_requests: int) -> CellResult:
    log = ReplayLog()
    options = ReplayOptions(warmup_requests=warmup_requests)
    arms = [ReplayArm("engine", "baseline", target)]
    await run_replay(draw_plan(setup.traffic), arms, log, clock=clock, origin_ns=clock.now_ns(), options=options)
    [cell] = log.cells
    return cell


def _simulated(options: argparse.Namespace) -> Machine:
    """`options.costs` is a document of practice_costs.py."""
    fit = json.loads(options.costs.read_text(encoding="utf-8"))
    return simulated_machine(StepCosts(**fit["costs"]), fit)


def _torch(options: argparse.Namespace) -> Machine:
    return torch_machine(options.model, options.scheme, options.threads)


MACHINES: Mapping[str, Callable[[argparse.Namespace], Machine]] = {"simulated": _simulated, "torch": _torch}
