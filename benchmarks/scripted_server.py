"""A server over real sockets whose every delay is known, in a process of its own.

    python benchmarks/scripted_server.py --slots 1 --cpu 0

It stands for another machine, so it can be given a CPU of its own, on which it never sleeps: what waking up takes on
this one is no part of the scripts. It prints its port on standard output and serves until it is killed. POST
/v1/completions serves the script of `oracle_scripts` that the prompt names, each part at its absolute due time. POST
/load streams events that carry the time at which they were written, by the monotonic clock, which all processes of a
machine share.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from oracle_scripts import script_of

from quantgate.replay.precise_timers import precise_loop
from quantgate.targets.openai.wire_script import DONE, WireAnswer, event, models

# A timer may be a little late: the rest is waited for awake. No longer than that, because the kernel likes to wake a
# client on the CPU of the server that wrote to it, and would make it wait for a server that is busy with waiting.
_AWAKE_NS = 200_000


@dataclass
class Slots:
    """When each slot is free next; a service takes exactly as long as its script, so that this is known beforehand."""

    free_at_ns: list[int]

    def start_ns(self, arrived_ns: int, service_ns: int) -> int:
        start_ns = max(arrived_ns, heapq.heappop(self.free_at_ns))
        heapq.heappush(self.free_at_ns, start_ns + service_ns)
        return start_ns


async def stay_awake() -> None:
    while True:
        await asyncio.sleep(0)


async def sleep_until(due_ns: int) -> None:
    remaining_ns = due_ns - time.monotonic_ns()
    if remaining_ns > _AWAKE_NS:
        await asyncio.sleep((remaining_ns - _AWAKE_NS) / 1e9)
    while time.monotonic_ns() < due_ns:
        await asyncio.sleep(0)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def head(status: int, kind: str = "text/event-stream") -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % (status, kind.encode())


async def serve_script(wire: WireAnswer, writer: asyncio.StreamWriter, start_ns: int) -> bool:
    """Whether the connection may be used again."""
    writer.write(head(wire.status))
    due_ns = start_ns
    for delay_ns, data in wire.parts:
        due_ns += delay_ns
        await sleep_until(due_ns)
        writer.write(chunk(data))
    if wire.cut is None:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return wire.cut is None


async def load_events(wanted: dict[str, Any], received_ns: int) -> AsyncIterator[bytes]:
    """`events` events of at least `bytes` bytes, one every `interval_us` (0: as fast as they are taken)."""
    padding = "x" * wanted["bytes"]
    started_ns = time.monotonic_ns()
    for index in range(wanted["events"]):
        due_ns = started_ns + index * wanted["interval_us"] * 1000
        if (remaining_ns := due_ns - time.monotonic_ns()) > 0:
            await asyncio.sleep(remaining_ns / 1e9)
        yield event({"sent_ns": time.monotonic_ns(), "received_ns": received_ns, "text": padding})
    yield DONE


async def read_request(reader: asyncio.StreamReader) -> tuple[str, bytes] | None:
    """Path and body; None when the client has closed."""
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    except asyncio.IncompleteReadError:
        return None
    lengths = [int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:")]
    body = await reader.readexactly(lengths[0]) if lengths else b""
    return lines[0].split()[1].decode(), body


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, slots: Slots) -> None:
    try:
        again = True
        while again and (request := await read_request(reader)) is not None:
            arrived_ns = time.monotonic_ns()
            path, body = request
            if path == "/v1/completions":
                wire = script_of(json.loads(body)["prompt"])
                start_ns = slots.start_ns(arrived_ns, sum(delay_ns for delay_ns, _ in wire.parts))
                again = await serve_script(wire, writer, start_ns)
            elif path == "/load":
                writer.write(head(200))
                async for data in load_events(json.loads(body)["load"], arrived_ns):
                    writer.write(chunk(data))
                    await writer.drain()
                writer.write(b"0\r\n\r\n")
            else:
                again = await serve_script(models("scripted"), writer, arrived_ns)
    except ConnectionError:
        pass  # The client went away, which some scripts are about.
    finally:
        writer.close()


async def serve(slot_count: int, *, awake: bool) -> None:
    slots = Slots([0] * slot_count)
    watch = asyncio.create_task(stay_awake()) if awake else None
    server = await asyncio.start_server(
        lambda reader, writer: handle(reader, writer, slots), "127.0.0.1", 0, limit=1 << 24, backlog=2048
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    try:
        await server.serve_forever()
    finally:
        if watch is not None:
            watch.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", type=int, default=4096)
    parser.add_argument("--cpu", type=int, default=None)
    arguments = parser.parse_args()
    if arguments.cpu is not None:
        os.sched_setaffinity(0, {arguments.cpu})
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        runner.run(serve(arguments.slots, awake=arguments.cpu is not None))


if __name__ == "__main__":
    main()
