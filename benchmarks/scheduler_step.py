"""What a step costs beside the model's computation: scheduler, books and records, by the number of active requests.

    python benchmarks/scheduler_step.py

The engine is the real one; its executor answers at once with the same token, and the time inside it is taken off. A
scene is a kind of traffic:

decode: all requests decode, nobody waits. turnover: answers end after some 100 tokens, and others take their places;
prefix sharing and sessions are on, and most prompts start alike. backlog: as turnover, with 10,000 requests that wait
and too few blocks for as many as may be active, so that each step looks for one that fits. preemption: more is let in
than the pool can hold.

Figures are microseconds over the steps of a scene; one thread, on a machine that does nothing else. `submit_us` is no
part of a step: it is the median of what `add_request` takes of its caller's thread for each request, with the hashing
of its prompt where prefixes are shared.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import math
import platform
import random
import sys
from dataclasses import dataclass, field
from statistics import mean, median, quantiles

from quantgate_engine.clock import MonotonicClock, VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.base import SampledToken, ScheduledSequence
from quantgate_engine.executor.simulated import SimulatedExecutor
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.settings import AdmissionSettings, EstimatorName

SIZES = (32, 64, 128, 256, 512)
BLOCK_SIZE = 16
PROMPT_TOKENS = (200, 600)
STEP_NS = 10_000_000
TOKEN = SampledToken(7)
NUMBERS = tuple(range(1000, 200_000))
SHARED_PREFIX = NUMBERS[:192]


@dataclass(frozen=True, slots=True)
class Scene:
    """One kind of traffic, for a number of requests that are to be active.

    blocks_per_request: blocks of the pool for each of them; places_per_request: how many may be active for each.
    """

    name: str
    output_tokens: tuple[int, int]
    blocks_per_request: int = 64
    places_per_request: int = 1
    waiting: int = 0
    estimator: EstimatorName = "guaranteed"
    cache: CacheSettings = field(default_factory=CacheSettings)


SHARING = CacheSettings(prefix_sharing=True, session_seconds=5.0, session_blocks=256)
SCENES = (
    Scene("decode", output_tokens=(2_000, 2_000), blocks_per_request=176),
    Scene("turnover", output_tokens=(50, 150), waiting=16, cache=SHARING),
    Scene(
        "backlog", output_tokens=(50, 150), blocks_per_request=32, places_per_request=4, waiting=10_000, cache=SHARING
    ),
    Scene("preemption", output_tokens=(50, 150), blocks_per_request=24, waiting=16, estimator="optimistic"),
)


class InstantExecutor(SimulatedExecutor):
    """Draws the same token for everybody, and knows how long it took for that."""

    def __init__(self, clock: VirtualClock, num_blocks: int) -> None:
        super().__init__(clock, num_blocks=num_blocks, block_size=BLOCK_SIZE, max_context_tokens=4096)
        self.spent_ns = 0
        self._machine = MonotonicClock()

    def execute(self, sequences: tuple[ScheduledSequence, ...]) -> list[SampledToken | None]:
        started_ns = self._machine.now_ns()
        self._clock.advance_ns(STEP_NS)
        tokens = [TOKEN if sequence.sample else None for sequence in sequences]
        self.spent_ns += self._machine.now_ns() - started_ns
        return tokens


class Traffic:
    """Submits requests so that as many wait as the scene says."""

    def __init__(self, scene: Scene, active: int, seed: int) -> None:
        self._scene = scene
        self._active = active
        self._random = random.Random(seed)
        self._numbers = itertools.count()
        self._machine = MonotonicClock()
        self.submit_us: list[float] = []
        clock = VirtualClock()
        places = active * scene.places_per_request
        config = EngineConfig(
            max_active_requests=places,
            max_step_tokens=4096 + places,
            block_size=BLOCK_SIZE,
            admission=AdmissionSettings(estimator=scene.estimator),
            cache=scene.cache,
        )
        self.executor = InstantExecutor(clock, num_blocks=scene.blocks_per_request * active)
        self.core = EngineCore(self.executor, config, clock)

    def top_up(self) -> None:
        """Called between the timed steps: nothing of it counts as theirs."""
        load = self.core.load
        missing = self._active + self._scene.waiting - load.active_requests - load.waiting_requests
        for _ in range(missing):
            self._submit()

    def _submit(self) -> None:
        number = next(self._numbers)
        first = self._random.randrange(len(NUMBERS) - PROMPT_TOKENS[1])
        prompt = NUMBERS[first : first + self._random.randint(*PROMPT_TOKENS)]
        terms = RequestTerms(session_id=f"s{number % 500}", slo_class=self._random.choice(("interactive", "batch")))
        params = SamplingParams(max_tokens=self._random.randint(*self._scene.output_tokens))
        whole = SHARED_PREFIX + prompt
        started_ns = self._machine.now_ns()
        self.core.add_request(f"r{number}", whole, params, terms)
        self.submit_us.append((self._machine.now_ns() - started_ns) / 1e3)


def measure(scene: Scene, active: int, steps: int, seed: int) -> dict[str, float]:
    """Times `steps` steps once the engine has as many active requests as it will have."""
    gc.collect()  # What is left of the engine before: else a timed step would pay for it.
    machine = MonotonicClock()
    traffic = Traffic(scene, active, seed)
    scheduler_us: list[float] = []
    executor_us: list[float] = []
    for number in range(-2 * active - 100, steps):
        traffic.top_up()
        traffic.executor.spent_ns = 0
        started_ns = machine.now_ns()
        traffic.core.step()
        spent_ns = machine.now_ns() - started_ns
        if number >= 0:
            scheduler_us.append((spent_ns - traffic.executor.spent_ns) / 1e3)
            executor_us.append(traffic.executor.spent_ns / 1e3)
    records = traffic.core.take_steps()[-steps:]
    traffic.core.check_integrity()
    return {
        "median_us": round(median(scheduler_us), 1),
        "mean_us": round(mean(scheduler_us), 1),
        "p90_us": round(quantiles(scheduler_us, n=10)[-1], 1),
        "median_executor_us": round(median(executor_us), 1),
        "submit_us": round(median(traffic.submit_us), 1),
        "median_active": median(record.active_requests for record in records),
        "median_decoding": median(record.batch_size_decode for record in records),
        "median_waiting": median(record.waiting_requests for record in records),
        "preemptions": sum(record.preemption_count for record in records),
        "cached_prompt_tokens": sum(record.cached_prompt_tokens for record in records),
    }


def growth(rows: dict[int, dict[str, float]]) -> float | None:
    """Exponent of the mean in the active requests, between the smallest and the largest size: 1 is linear.

    Not of the median: where few requests run, most steps let nobody in, and where many run, all steps do.
    """
    smallest, largest = min(rows), max(rows)
    if smallest == largest:
        return None
    ratio = rows[largest]["mean_us"] / rows[smallest]["mean_us"]
    return round(math.log(ratio) / math.log(largest / smallest), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--active", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--scenes", nargs="+", choices=[scene.name for scene in SCENES], default=None)
    arguments = parser.parse_args()
    report: dict[str, object] = {
        "python": sys.version.split()[0],
        "machine": platform.machine(),
        "steps": arguments.steps,
    }
    for scene in SCENES:
        if arguments.scenes is None or scene.name in arguments.scenes:
            rows = {active: measure(scene, active, arguments.steps, arguments.seed) for active in arguments.active}
            report[scene.name] = {"growth_exponent": growth(rows), "by_active_requests": rows}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
