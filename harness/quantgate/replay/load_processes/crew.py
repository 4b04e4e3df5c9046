"""One load by several processes, where one process cannot send as much: one schedule, one anchor, one log."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from quantgate.arm_life import child_start
from quantgate.replay.driver import OnEnded, sessions
from quantgate.replay.load_processes.messages import (
    Begin,
    Done,
    Ended,
    Failed,
    Job,
    Part,
    Ready,
    TargetRecipe,
    read_message,
    write_message,
)
from quantgate.targets.base import TargetGoneError
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.errors import RunError

_CHILD_START = Path(child_start.__file__)


class LoadProcessError(RunError):
    """A load process ended or failed: its part of the load was not delivered."""


def dealt(requests: Sequence[PlannedRequest], processes: int) -> list[tuple[PlannedRequest, ...]]:
    """One part per process: whole sessions and single requests in turn, in order of schedule."""
    chains = sorted(sessions(requests), key=lambda turns: turns[0].scheduled_ns)
    return [tuple(request for turns in chains[index::processes] for request in turns) for index in range(processes)]


class LoadCrew:
    """The load processes of one target. Each has a target of its own, made by `recipe`, and connections of its own."""

    def __init__(self, recipe: TargetRecipe, processes: int, timeout_ns: int | None) -> None:
        self._job = Job(recipe, timeout_ns)
        self._size = processes
        self._processes: list[asyncio.subprocess.Process] = []
        self._planned: dict[str, PlannedRequest] = {}

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    async def start(self) -> None:
        """Raises LoadProcessError where one cannot start its target."""
        for _ in range(self._size):
            self._processes.append(await _started())
        for process in self._processes:
            write_message(_input_of(process), self._job)
        await self._all_ready()

    async def prepare(self, requests: Sequence[PlannedRequest]) -> None:
        """Hands every process its part, so that nothing is left to do when the time has come."""
        self._planned = {request.request_id: request for request in requests}
        for process, part in zip(self._processes, dealt(requests, self._size), strict=True):
            write_message(_input_of(process), Part(part))
        await self._all_ready()

    async def replay(self, anchor_ns: int, on_ended: OnEnded) -> int:
        """Sends what was prepared; returns the CPU time of the busiest process when all of it has ended.

        Raises TargetGoneError where the target is gone and LoadProcessError where a process is. After an error, and
        when it is cancelled, no process sends any more.
        """
        try:
            for process in self._processes:
                write_message(_input_of(process), Begin(anchor_ns))
            async with asyncio.TaskGroup() as tasks:
                ends = [tasks.create_task(self._followed(index, on_ended)) for index in range(self._size)]
        except BaseException as error:
            self._kill()
            if isinstance(error, BaseExceptionGroup):
                # One is enough: after it the others were cut off.
                raise error.exceptions[0] from None
            raise
        return max(end.result() for end in ends)

    async def stop(self) -> None:
        self._kill()
        for process in self._processes:
            # Not wait(): where output is left unread, that may not return.
            await process.communicate()
        self._processes.clear()

    async def _followed(self, index: int, on_ended: OnEnded) -> int:
        while True:
            message = await self._next(index)
            if isinstance(message, Done):
                return message.cpu_ns
            if isinstance(message, Ended):
                observation = message.observation
                observation.request = self._planned[observation.request.request_id]
                on_ended(observation)

    async def _all_ready(self) -> None:
        for index in range(self._size):
            if not isinstance(await self._next(index), Ready):
                raise AssertionError("a load process spoke out of turn")

    async def _next(self, index: int) -> object:
        process = self._processes[index]
        if process.stdout is None:
            raise AssertionError("a load process has no output")
        message = await read_message(process.stdout)
        name = f"load process {index + 1} of {self._size}"
        if message is None:
            status = await process.wait()
            how = f"signal {-status}" if status < 0 else f"exit code {status}"
            raise LoadProcessError(
                f"The run is invalid: {name} ended ({how}) before its part of the load was sent; look at its output "
                "above and at the machine's memory."
            )
        if isinstance(message, Failed):
            if message.target_gone:
                raise TargetGoneError(message.reason)
            raise LoadProcessError(f"The run is invalid: {name} failed: {message.reason}")
        return message

    def _kill(self) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.kill()


async def _started() -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "quantgate.replay.load_processes.worker"]
    return await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", str(_CHILD_START), str(os.getpid()), *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip


def _input_of(process: asyncio.subprocess.Process) -> asyncio.StreamWriter:
    if process.stdin is None:
        raise AssertionError("a load process has no input")
    return process.stdin
