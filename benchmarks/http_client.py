"""What the HTTP client adds to the times that it measures.

    python benchmarks/http_client.py --output benchmarks/results/http_client.json
    python benchmarks/http_client.py --oracle --output benchmarks/results/http_oracle.json

Without --oracle: aiohttp (which quantgate uses), httpx and bare asyncio streams, in turn, against a server process that
writes into each event when it sent it. `delay` is from there to the parsed event in the client, `first` that of each
stream's first event; `upload` is from the call of the client to the server's having read the request.

With --oracle: quantgate's driver, target and metrics against scripts with known delays over real sockets; every figure
is compared with what the script implies, and more than --tolerance-ms apart ends with exit code 1.

The server stands for another machine: where there are two CPUs or more, it has one of its own, and the client the rest.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

# `benchmarks` is found from the folder above, and a script has only its own on the path.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.cpus import set_cpu_aside
from benchmarks.http_oracle import compare_with_oracle
from benchmarks.http_transports import CLIENTS
from benchmarks.output_file import output_file

from quantgate.replay.precise_timers import precise_loop
from quantgate.targets.openai.sse import SseDecoder
from quantgate.targets.openai.transport import Transport


@dataclass(frozen=True)
class Load:
    """`streams` that begin 3 ms apart, each of `events` events of `bytes` bytes, one every `interval_us`."""

    streams: int
    events: int
    bytes: int
    interval_us: int
    prompt_bytes: int = 100


STAGGER_S = 0.003
LOADS: dict[str, Load] = {
    "one stream, small events, as fast as it goes": Load(1, 20_000, 40, 0),
    "one stream, 40 kB events, as fast as it goes": Load(1, 1_000, 40_000, 0),
    "1 stream, 50 events/s": Load(1, 150, 200, 20_000),
    "64 streams, 20 events/s each": Load(64, 60, 200, 50_000),
    "400 streams, 4 events/s each": Load(400, 20, 200, 250_000),
    "one prompt of 1 MB": Load(1, 20, 200, 10_000, 1_000_000),
}


@dataclass
class Seen:
    delays_ns: list[int] = field(default_factory=list)
    first_ns: list[int] = field(default_factory=list)
    upload_ns: list[int] = field(default_factory=list)


@contextmanager
def scripted_server(cpu: int | None, slots: int = 1 << 12) -> Iterator[str]:
    """The URL of a server process on that CPU (None: on any), which ends with the block."""
    script = Path(__file__).with_name("scripted_server.py")
    command = [sys.executable, str(script), "--slots", str(slots), *([] if cpu is None else ["--cpu", str(cpu)])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("the server has no output")
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


async def read_stream(transport: Transport, url: str, load: Load, seen: Seen, index: int) -> None:
    await asyncio.sleep(index * STAGGER_S)
    wanted = {"events": load.events, "bytes": load.bytes, "interval_us": load.interval_us}
    body = json.dumps({"load": wanted, "prompt": "p" * load.prompt_bytes}).encode()
    called_ns = time.monotonic_ns()
    answer = await transport.send("POST", f"{url}/load", {"Content-Type": "application/json"}, body)
    decoder, first = SseDecoder(), True
    async for received in answer.body():
        for event in decoder.feed(received.data):
            if event.data == "[DONE]":
                continue
            document = json.loads(event.data)
            delay_ns = time.monotonic_ns() - document["sent_ns"]
            seen.delays_ns.append(delay_ns)
            if first:
                seen.first_ns.append(delay_ns)
                seen.upload_ns.append(document["received_ns"] - called_ns)
                first = False
    answer.close()


async def run_load(client: str, url: str, load: Load) -> dict[str, float]:
    transport, seen = CLIENTS[client](), Seen()
    await transport.open()
    gc.collect()
    cpu_ns, started_ns = time.process_time_ns(), time.monotonic_ns()
    await asyncio.gather(*(read_stream(transport, url, load, seen, index) for index in range(load.streams)))
    wall_ns, cpu_ns = time.monotonic_ns() - started_ns, time.process_time_ns() - cpu_ns
    await transport.close()
    assert len(seen.delays_ns) == load.streams * load.events
    percentiles = {
        f"{name}_ms_p{percent:g}": float(np.percentile(values, percent)) / 1e6
        for name, values in (("delay", seen.delays_ns), ("first", seen.first_ns), ("upload", seen.upload_ns))
        for percent in (50, 99, 100)
    }
    events = len(seen.delays_ns)
    return percentiles | {
        "events_per_s": events * 1e9 / wall_ns,
        "cpu_us_per_event": cpu_ns / 1e3 / events,
        "megabytes_per_s": events * load.bytes * 1e3 / wall_ns,
    }


def run(client: str, url: str, load: Load) -> dict[str, float]:
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        return runner.run(run_load(client, url, load))


def installed(client: str) -> bool:
    try:
        version(client)
    except PackageNotFoundError:
        return client == "asyncio streams"
    return True


def compare_clients(repeats: int, server_cpu: int | None) -> dict[str, object]:
    """Medians over the repeats; the clients take turns, forwards and backwards."""
    clients = [client for client in CLIENTS if installed(client)]
    runs: dict[str, dict[str, list[dict[str, float]]]] = {name: {client: [] for client in clients} for name in LOADS}
    with scripted_server(server_cpu) as url:
        for repeat in range(repeats):
            for name, load in LOADS.items():
                for client in clients if repeat % 2 == 0 else reversed(clients):
                    runs[name][client].append(asyncio.run(run_load(client, url, load)))
    return {
        name: {client: _medians(results) for client, results in by_client.items()} for name, by_client in runs.items()
    }


def _medians(results: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(median(result[key] for result in results), 4) for key in results[0]}


def print_clients(loads: dict[str, dict[str, dict[str, float]]]) -> None:
    keys = {
        "delay p50": "delay_ms_p50", "p99": "delay_ms_p99", "max": "delay_ms_p100", "first p50": "first_ms_p50",
        "first p99": "first_ms_p99", "upload p50": "upload_ms_p50", "events/s": "events_per_s",
        "us CPU/event": "cpu_us_per_event", "MB/s": "megabytes_per_s",
    }  # fmt: skip
    for name, by_client in loads.items():
        print(f"\n{name} (times in ms)")
        print(" " * 17 + "".join(f"{title:>14}" for title in keys))
        for client, figures in by_client.items():
            print(f"  {client:15}" + "".join(f"{figures[key]:14.3f}" for key in keys.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tolerance-ms", type=float, default=2.0)
    parser.add_argument("--output", type=output_file)
    arguments = parser.parse_args()
    server_cpu = set_cpu_aside()
    figures: dict[str, object] = {
        "server_has_a_cpu_of_its_own": server_cpu is not None,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "versions": {
            client: version(client) for client in CLIENTS if client != "asyncio streams" and installed(client)
        },
    }
    exit_code = 0
    if arguments.oracle:
        serving = partial(scripted_server, server_cpu)
        compared = compare_with_oracle(serving, arguments.repeats, arguments.tolerance_ms)
        figures |= compared
        print(json.dumps(compared, indent=2))
        exit_code = 0 if compared["within_tolerance"] else 1
    else:
        loads = compare_clients(arguments.repeats, server_cpu)
        figures["loads"] = loads
        print_clients(loads)
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(figures, indent=2) + "\n")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
