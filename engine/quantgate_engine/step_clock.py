"""The clock of a simulated device: a step takes time of its own, while whoever sends requests looks at theirs."""

from __future__ import annotations

from quantgate_engine.clock import Clock, VirtualClock


class StepClock:
    """The time of `outside`, except inside a step, where it runs ahead by what the step costs.

    A simulated step is computed at once when it begins, and over for the others when the time outside has caught up.
    `inside` is the clock for the simulated executor to advance.
    """

    def __init__(self, outside: Clock) -> None:
        self._outside = outside
        self.inside = VirtualClock(outside.now_ns())
        self._in_step = False

    def now_ns(self) -> int:
        return self.inside.now_ns() if self._in_step else self._outside.now_ns()

    def begin_step(self) -> None:
        self.inside.advance_ns(self._outside.now_ns() - self.inside.now_ns())
        self._in_step = True

    def end_step(self) -> int:
        """Nanoseconds that the time outside has still to pass until the step is over."""
        self._in_step = False
        return self.inside.now_ns() - self._outside.now_ns()
