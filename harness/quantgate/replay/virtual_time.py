"""An asyncio event loop whose time jumps to the next timer: hours of traffic in moments, exact to the nanosecond."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from quantgate_engine.clock import VirtualClock

Result = TypeVar("Result")


class _JumpingSelector(selectors.SelectSelector):
    """Instead of waiting for a timer, moves the clock to it."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("every task waits for another one: nothing is ready and no timer is set")
        self._clock.advance_ns(max(0, round(timeout * 1e9)))
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Runs on `clock`; whatever waits must wait for timers or tasks of this loop, never for threads or sockets."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        super().__init__(_JumpingSelector(clock))

    def time(self) -> float:
        return self._clock.now_ns() / 1e9


def run_in_virtual_time(main: Callable[[VirtualClock], Coroutine[Any, Any, Result]]) -> Result:
    """Runs `main(clock)` to its end on a fresh virtual clock, as `asyncio.run` does on the real one."""
    clock = VirtualClock()
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(main(clock))
