"""The measurement: in each round every engine answers the lone request a few times, then the batch once.

One at a time, in an order that rotates. Lone requests go round in laps of seconds, because what memory gives changes
from one minute to the next: those of one lap can be compared, whichever minute it was.

An engine is loaded once for its width and its process stopped (SIGSTOP) whenever it is not its turn: some keep threads
that spin while they wait, which would take the processors from whoever is measured. Loading anew for each round would
do too, but takes some of them a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from benchmarks.peers.arms import Arm
from benchmarks.peers.description import Widths
from benchmarks.peers.noise import Noise, with_noise
from benchmarks.peers.worker_process import WorkerError, WorkerProcess
from benchmarks.peers.workload import Workload

Item = TypeVar("Item")

LAPS = 3
"""Of the lone request, in each round."""

WARM_UP_TOKENS = 4


@dataclass(frozen=True, slots=True)
class SingleTurn:
    """An engine's lone request in one lap."""

    ttft_ms: float
    decode_tok_s: float
    noise: Noise


@dataclass(frozen=True, slots=True)
class BatchTurn:
    """An engine's batch in one round."""

    output_tok_s: float
    noise: Noise


@dataclass(slots=True)
class ArmResult:
    """failure: why the arm has no figures, or not all of them; the ids are those of its first turns."""

    arm: Arm
    widths: Widths | None = None
    versions: dict[str, str] = field(default_factory=dict)
    load_s: float | None = None
    peak_rss_mib: float | None = None
    singles: list[SingleTurn] = field(default_factory=list)
    batches: list[BatchTurn] = field(default_factory=list)
    single_ids: list[int] = field(default_factory=list)
    batch_ids: list[list[int]] = field(default_factory=list)
    failure: str | None = None

    @property
    def ran(self) -> bool:
        return self.failure is None and bool(self.batches)


@dataclass(frozen=True, slots=True)
class Settings:
    """timeout_s: for each answer of an engine, loading included. cpus: those on which every engine runs."""

    workload: Workload
    rounds: int
    threads: int
    cpus: Sequence[int]
    models: str
    timeout_s: float


def rotated(items: Sequence[Item], places: int) -> list[Item]:
    """The items in their order, begun `places` later."""
    start = places % len(items) if items else 0
    return [*items[start:], *items[:start]]


def measure_arms(
    arms: Sequence[Arm], settings: Settings, start: Callable[[Arm], WorkerProcess], tell: Callable[[str], None]
) -> list[ArmResult]:
    """Figures of each arm, in their order. An arm that fails says so and holds up no other."""
    results = [ArmResult(arm) for arm in arms]
    workers: dict[str, WorkerProcess] = {}
    try:
        for result in results:
            with _Failures(result, workers, tell):
                tell(f"loading {result.arm.name}")
                worker = workers[result.arm.name] = start(result.arm)
                _load(result, worker, settings)
                worker.pause()
        for number in range(settings.rounds):
            what = f"round {number + 1} of {settings.rounds}"
            for lap in range(LAPS):
                tell(f"{what}: lone request, lap {lap + 1} of {LAPS}")
                for result in rotated([each for each in results if each.failure is None], number + lap):
                    with _Failures(result, workers, tell), _turn_of(workers[result.arm.name]) as worker:
                        _take_single(result, worker, settings)
            for result in rotated([each for each in results if each.failure is None], number):
                tell(f"{what}: batch of {result.arm.name}")
                with _Failures(result, workers, tell), _turn_of(workers[result.arm.name]) as worker:
                    _take_batch(result, worker, settings)
        for result in results:
            if result.failure is None:
                with _Failures(result, workers, tell):
                    workers[result.arm.name].resume()
                    answer = workers[result.arm.name].ask("quit", settings.timeout_s)
                    result.peak_rss_mib = float(answer["peak_rss_mib"])
    finally:
        for worker in workers.values():
            worker.close()
    return results


class _Failures:
    """Keeps an arm's failure with the arm and ends its worker."""

    def __init__(self, result: ArmResult, workers: dict[str, WorkerProcess], tell: Callable[[str], None]) -> None:
        self._result, self._workers, self._tell = result, workers, tell

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, WorkerError):
            return False
        self._result.failure = str(error)
        self._tell(str(error))
        worker = self._workers.pop(self._result.arm.name, None)
        if worker is not None:
            worker.close()
        return True


def _load(result: ArmResult, worker: WorkerProcess, settings: Settings) -> None:
    answer = worker.ask(
        "load",
        settings.timeout_s,
        precision=result.arm.precision.name,
        threads=settings.threads,
        cpus=list(settings.cpus),
        workload=asdict(settings.workload),
        models=settings.models,
    )
    result.load_s, result.versions = float(answer["load_s"]), dict(answer["versions"])
    result.widths = Widths(**answer["widths"])


@contextmanager
def _turn_of(worker: WorkerProcess) -> Iterator[WorkerProcess]:
    worker.resume()
    try:
        yield worker
    finally:
        worker.pause()


def _take_single(result: ArmResult, worker: WorkerProcess, settings: Settings) -> None:
    ids, tokens = settings.workload.single_prompt, settings.workload.single_tokens
    # Warm-ups have the shapes of what is measured and other tokens: nothing can be remembered that helps.
    worker.ask("single", settings.timeout_s, ids=ids[::-1], tokens=WARM_UP_TOKENS)
    answer, noise = with_noise(
        worker.pid, lambda: worker.ask("single", settings.timeout_s, ids=ids, tokens=tokens), time.monotonic
    )
    _require_lengths(result.arm, [answer["ids"]], [tokens])
    result.single_ids = result.single_ids or answer["ids"]
    decode_s = answer["total_s"] - answer["first_token_s"]
    result.singles.append(SingleTurn(1000 * answer["first_token_s"], (tokens - 1) / decode_s, noise))


def _take_batch(result: ArmResult, worker: WorkerProcess, settings: Settings) -> None:
    workload = settings.workload
    prompts, tokens = workload.batch_prompts, workload.batch_tokens
    _ask_batch(worker, settings, [prompt[::-1] for prompt in prompts[: workload.active]], WARM_UP_TOKENS)
    answer, noise = with_noise(worker.pid, lambda: _ask_batch(worker, settings, prompts, tokens), time.monotonic)
    _require_lengths(result.arm, answer["ids"], [tokens] * len(prompts))
    result.batch_ids = result.batch_ids or answer["ids"]
    result.batches.append(BatchTurn(workload.batch_output_tokens / answer["total_s"], noise))


def _ask_batch(worker: WorkerProcess, settings: Settings, prompts: list[list[int]], tokens: int) -> dict[str, Any]:
    return worker.ask("batch", settings.timeout_s, prompts=prompts, tokens=tokens)


def _require_lengths(arm: Arm, answers: list[list[int]], expected: list[int]) -> None:
    found = [len(ids) for ids in answers]
    if found != expected:
        odd = next(
            (pair for pair in zip(found, expected, strict=False) if pair[0] != pair[1]), (len(found), len(expected))
        )
        raise WorkerError(
            f"{arm.name} gave {odd[0]} tokens or answers where {odd[1]} were asked for; its figures are void"
        )
