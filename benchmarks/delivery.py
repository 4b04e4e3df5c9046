"""Does the driver deliver the load that it was asked for?

    python benchmarks/delivery.py --output benchmarks/results/delivery.json
    python benchmarks/delivery.py --rate 400 --seconds 30 --arrivals constant

Replays a plan over HTTP by the replay, target and certificate of every run, against `scripted_server.py` in a process
of its own, whose answers have 4 tokens and take 50 ms. Prints JSON: the rates asked for and delivered, whether every
request and token was counted, lag (sent less scheduled), errors, the driver's share of a CPU, and how long it waited
for one that others had. Exit code 1 where a request or token is missing, an answer failed, or the 99th percentile of
the lag is above --lag-limit-ms.

The server stands for another machine: where there are two CPUs or more, it has one of its own, and the driver the rest.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

# `benchmarks` is found from the folder above, and a script has only its own on the path.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow.compute as pc
from benchmarks.cpus import set_cpu_aside
from benchmarks.http_client import scripted_server
from benchmarks.oracle_scripts import DELIVERY_TOKENS
from benchmarks.output_file import output_file

from quantgate.replay.arms import ReplayArm
from quantgate.replay.fidelity import certify
from quantgate.replay.hooks import ReplayHooks
from quantgate.replay.precise_timers import precise_loop
from quantgate.replay.replay_log import ReplayLog
from quantgate.replay.run_replay import ReplayOptions, run_replay
from quantgate.targets.openai.settings import EndpointSettings
from quantgate.targets.openai.target import OpenAITarget
from quantgate.workload.plan import PlannedRequest, ReplayPlan
from quantgate.workload.portable_draws import PortableDraws
from quantgate.workload.transforms.arrival_processes import PROCESSES, ProcessName
from quantgate_engine.clock import MonotonicClock

ARRIVALS = ("poisson", "constant")
TIMEOUT_S = 30.0


def plan_of(arrivals: ProcessName, rate: float, seconds: float, seed: int) -> ReplayPlan:
    """`rate` x `seconds` requests of that process; the last one falls where its gaps put it."""
    starts_s = PROCESSES[arrivals].starts(round(rate * seconds), PortableDraws(str(seed)), rate=rate)
    requests = (
        PlannedRequest(f"r{index:06d}", round(start_s * 1e9), (), DELIVERY_TOKENS, prompt_text=f"delivery-{index}")
        for index, start_s in enumerate(starts_s)
    )
    return ReplayPlan(tuple(requests), source="delivery", source_sha256="0" * 64, seed=seed)


async def replay(plan: ReplayPlan, url: str, load_processes: int) -> ReplayLog:
    clock, log = MonotonicClock(), ReplayLog()
    recipe = partial(OpenAITarget, EndpointSettings(url=url), arm_id="scripted", role="baseline")
    await run_replay(
        plan,
        [ReplayArm("scripted", "baseline", recipe(clock=clock), recipe)],
        log,
        clock=clock,
        origin_ns=clock.now_ns(),
        options=ReplayOptions(request_timeout_seconds=TIMEOUT_S, load_processes=load_processes),
        hooks=ReplayHooks(on_progress=lambda _: None, thread_cpu_ns=time.thread_time_ns),
    )
    return log


def figures(plan: ReplayPlan, log: ReplayLog, lag_limit_ms: float) -> dict[str, Any]:
    certificate = certify("scripted", log.cells, requests_intended=len(plan.requests), lag_limit_ms=lag_limit_ms)
    requests = log.requests()
    scheduled_ns, sent_ns = (requests[name].to_numpy() for name in ("scheduled_ns", "sent_ns"))
    exact = certificate.requests_delivered == certificate.requests_intended and _all_equal(
        requests["output_tokens"].to_pylist(), DELIVERY_TOKENS
    )
    return {
        "requests_intended": certificate.requests_intended,
        "requests_delivered": certificate.requests_delivered,
        "rate_intended_rps": _rate(scheduled_ns),
        "rate_delivered_rps": _rate(sent_ns),
        "every_request_and_token_counted": exact,
        "errors": requests.num_rows - pc.sum(pc.equal(requests["status"], "finished")).as_py(),
        "lag_ms": {
            "p50": round(certificate.lag_ms_p50, 3),
            "p95": round(certificate.lag_ms_p95, 3),
            "p99": round(certificate.lag_ms_p99, 3),
            "max": round(certificate.lag_ms_max, 3),
        },
        "largest_difference_of_counts": {
            f"{window.window_seconds} s": window.max_difference for window in certificate.windows
        },
        "driver_cpu_share": round(certificate.driver_cpu_share or 0.0, 3),
        "valid": certificate.valid,
        "reasons": certificate.reasons,
    }


def _all_equal(values: list[int], wanted: int) -> bool:
    return all(value == wanted for value in values)


def _rate(times_ns: Any) -> float:
    return round((len(times_ns) - 1) * 1e9 / float(times_ns.max() - times_ns.min()), 3)


def measure(
    arrivals: ProcessName, *, rate: float, seconds: float, seed: int, lag_limit_ms: float, load_processes: int = 1
) -> dict[str, Any]:
    plan = plan_of(arrivals, rate, seconds, seed)
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    server_cpu = set_cpu_aside()
    try:
        with scripted_server(server_cpu) as url, asyncio.Runner(loop_factory=precise_loop) as runner:
            before_s = waited_for_cpu_s()
            log = runner.run(replay(plan, url, load_processes))
            after_s = waited_for_cpu_s()
    finally:
        if cpus is not None:
            os.sched_setaffinity(0, cpus)
    return {
        "arrivals": arrivals,
        "rate_rps": rate,
        "seconds": seconds,
        "seed": seed,
        "lag_limit_ms": lag_limit_ms,
        "load_processes": load_processes,
        "processors": os.cpu_count(),
        "server_has_a_cpu_of_its_own": server_cpu is not None,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "real_time_priority": hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) == os.SCHED_FIFO,
        "driver_waited_for_cpu_s": None if before_s is None or after_s is None else round(after_s - before_s, 3),
    } | figures(plan, log, lag_limit_ms)


def waited_for_cpu_s() -> float | None:
    """How long this process has been ready to run while others had the CPU; None where the kernel does not tell."""
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--arrivals", choices=ARRIVALS, default="poisson")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load-processes", type=int, default=1)
    parser.add_argument("--lag-limit-ms", type=float, default=5.0)
    parser.add_argument("--output", type=output_file)
    arguments = parser.parse_args()
    found = measure(
        arguments.arrivals,
        rate=arguments.rate,
        seconds=arguments.seconds,
        seed=arguments.seed,
        lag_limit_ms=arguments.lag_limit_ms,
        load_processes=arguments.load_processes,
    )
    text = json.dumps(found, indent=2)
    print(text)
    if arguments.output is not None:
        arguments.output.write_text(text + "\n")
    return 0 if found["valid"] and found["every_request_and_token_counted"] and not found["errors"] else 1


if __name__ == "__main__":
    sys.exit(main())
