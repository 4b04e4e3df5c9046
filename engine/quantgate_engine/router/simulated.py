"""Pools without a model: the same router and engines on a virtual clock, on one device or on one each."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate_engine.clock import Clock, VirtualClock
from quantgate_engine.executor.simulated import SimulatedExecutor, StepCosts
from quantgate_engine.router.device import Device
from quantgate_engine.router.pool import Pool
from quantgate_engine.router.router_core import RouterCore
from quantgate_engine.router.settings import PoolSettings, RouterSettings
from quantgate_engine.step_clock import StepClock
from quantgate_engine.step_result import StepResult

NUM_BLOCKS = 1024
"""Blocks of a pool whose engine settings name no number."""

MAX_CONTEXT_TOKENS = 2048
"""Longest context of a pool whose engine settings name none."""


class SimulatedDevice:
    """Some of a router's pools, which take turns on one device."""

    def __init__(self, router: RouterCore, pools: Sequence[Pool], settings: RouterSettings, clock: StepClock) -> None:
        self._router = router
        self._device = Device(pools, settings)
        self._clock = clock

    @property
    def has_work(self) -> bool:
        """Whether `step` has anything to do; any device tells of the requests that no pool took."""
        return self._device.has_work or self._router.has_refused

    def step(self) -> tuple[StepResult, int]:
        """Begins the next step -> what it will bring, and the nanoseconds that it takes.

        Its books are as after the step at once; until that time has passed, the device is busy and the result nobody's.
        """
        self._clock.begin_step()
        result = self._router.step_on(self._device)
        return result, self._clock.end_step()


class SimulatedRouter:
    """A RouterCore (`core`) over simulated executors, and the devices (`devices`) that its pools are on.

    shared_device: one device for all pools, so that a step of one delays the others; else each pool has its own.
    clock: the time that requests arrive by. It may be the clock of an event loop: then a task for each device takes
    `step` and sleeps as long as the step lasts. costs: those of every device.

    Requests are added to and aborted at `core`. Raises ConfigurationError where the pools do not go together.
    """

    def __init__(
        self,
        pools: Sequence[PoolSettings],
        settings: RouterSettings | None = None,
        *,
        clock: Clock,
        costs: StepCosts | None = None,
        shared_device: bool = True,
    ) -> None:
        settings = settings or RouterSettings()
        shared = StepClock(clock)
        clocks = [shared if shared_device else StepClock(clock) for _ in pools]
        made = [_simulated_pool(pool, step_clock, costs) for pool, step_clock in zip(pools, clocks, strict=True)]
        self.core = RouterCore(made, settings)
        groups = [(made, shared)] if shared_device else [([pool], own) for pool, own in zip(made, clocks, strict=True)]
        self.devices = tuple(SimulatedDevice(self.core, group, settings, own) for group, own in groups)


class RouterSimulation:
    """Lets time pass for a SimulatedRouter on its virtual clock; between two calls requests may be added and aborted.

    A step that is under way when a request is added or aborted goes on as it was planned, as on a real device.
    """

    def __init__(self, router: SimulatedRouter, clock: VirtualClock) -> None:
        self._core = router.core
        self._devices = router.devices
        self._clock = clock
        self._running: dict[SimulatedDevice, tuple[int, StepResult]] = {}

    def run_until(self, at_ns: int) -> list[StepResult]:
        """Runs to that time; returns what the steps brought that ended meanwhile, in the order of their ends."""
        results: list[StepResult] = []
        while self._clock.now_ns() < at_ns:
            self._begin_steps()
            results += self._pass_to(min([at_ns, *self._ends()]))
        return results

    def run(self) -> list[StepResult]:
        """Runs until no request is left."""
        results: list[StepResult] = []
        while True:
            self._begin_steps()
            ends = self._ends()
            if not ends:
                return results
            results += self._pass_to(min(ends))

    def _begin_steps(self) -> None:
        for device in self._devices:
            if device not in self._running and device.has_work:
                result, duration_ns = device.step()
                self._running[device] = self._clock.now_ns() + duration_ns, result

    def _ends(self) -> list[int]:
        return [end_ns for end_ns, _ in self._running.values()]

    def _pass_to(self, at_ns: int) -> list[StepResult]:
        self._clock.advance_ns(at_ns - self._clock.now_ns())
        self._core.expire_sessions()
        over = [device for device in self._devices if device in self._running and self._running[device][0] <= at_ns]
        return [self._running.pop(device)[1] for device in over]


def _simulated_pool(settings: PoolSettings, clock: StepClock, costs: StepCosts | None) -> Pool:
    engine = settings.engine
    executor = SimulatedExecutor(
        clock.inside,
        costs,
        num_blocks=engine.num_kv_blocks or NUM_BLOCKS,
        block_size=engine.block_size,
        max_context_tokens=engine.max_context_tokens or MAX_CONTEXT_TOKENS,
    )
    return Pool.over(settings, executor, clock)
