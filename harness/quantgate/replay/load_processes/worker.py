"""A load process: drives its part of each cell against its own connections to the server.

It ends with its standard input, so that it outlives the run by nothing, however the run ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

from quantgate.replay.driver import Driver
from quantgate.replay.garbage import only_new_garbage
from quantgate.replay.load_processes.messages import (
    Begin,
    Done,
    Ended,
    Failed,
    Job,
    Part,
    Ready,
    read_message,
    write_message,
)
from quantgate.replay.precise_timers import precise_loop
from quantgate.targets.base import Target, TargetGoneError
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import Clock, MonotonicClock
from quantgate_engine.errors import QuantgateError


class _Worker:
    def __init__(self, writer: asyncio.StreamWriter, target: Target, clock: Clock, timeout_ns: int | None) -> None:
        self._writer = writer
        self._target = target
        self._driver = Driver(target, clock, lambda seen: write_message(writer, Ended.of(seen)), timeout_ns)
        self._sending: asyncio.Task[None] | None = None

    async def serve(self, reader: asyncio.StreamReader) -> None:
        try:
            await self._target.start()
        except QuantgateError as error:
            write_message(self._writer, Failed(str(error), target_gone=False))
            return
        write_message(self._writer, Ready())
        requests: tuple[PlannedRequest, ...] = ()
        # Read also while requests are sent: its end is how the process learns that the run is no more.
        while (message := await read_message(reader)) is not None:
            if isinstance(message, Part):
                requests = message.requests
                write_message(self._writer, Ready())
            elif isinstance(message, Begin):
                self._sending = asyncio.create_task(self._send(requests, message.anchor_ns))

    async def _send(self, requests: tuple[PlannedRequest, ...], anchor_ns: int) -> None:
        cpu_before_ns = time.thread_time_ns()
        try:
            with only_new_garbage():
                await self._driver.replay(requests, anchor_ns)
            write_message(self._writer, Done(time.thread_time_ns() - cpu_before_ns))
        except TargetGoneError as gone:
            write_message(self._writer, Failed(str(gone), target_gone=True))
        except Exception as error:  # noqa: BLE001 - whatever it is, the run has to hear of it
            write_message(self._writer, Failed(f"{type(error).__name__}: {error}", target_gone=False))


async def _work() -> None:
    reader, writer = await _standard_streams()
    job = await read_message(reader)
    if isinstance(job, Job):
        clock = MonotonicClock()
        await _Worker(writer, job.recipe(clock=clock), clock, job.timeout_ns).serve(reader)
        await writer.drain()


async def _standard_streams() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(0), "rb", 0))
    output = os.fdopen(os.dup(1), "wb", 0)
    # What a library prints goes to the terminal and not between the messages.
    os.dup2(2, 1)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, output)
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


def main() -> None:
    # Ctrl-C on a terminal reaches every process there; the run decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        runner.run(_work())
    sys.stderr.flush()
    # Open requests may wait for their server; nobody waits for them any more.
    os._exit(0)


if __name__ == "__main__":
    main()
