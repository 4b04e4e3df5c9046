"""The measurement: every engine once per round, one at a time, in an order that rotates.

An engine is loaded once for its width and its process stopped (SIGSTOP) whenever it is not its turn: some keep threads
that spin while they wait, which would take the processors from whoever is measured. Loading anew for each round would
do too, but takes some of them a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from benchmarks.peers.arms import Arm
from benchmarks.peers.description import Widths
from benchmarks.peers.noise import Noise, with_noise
from benchmarks.peers.worker_process import WorkerError, WorkerProcess
from benchmarks.peers.workload import Workload

Item = TypeVar("Item")

WARM_UP_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """An engine's figures in one round."""

    ttft_ms: float
    decode_tok_s: float
    batch_output_tok_s: float
    single_noise: Noise
    batch_noise: Noise


@dataclass(slots=True)
class ArmResult:
    """failure: why the arm has no figures, or not of all rounds; the ids are those of its first turn."""

    arm: Arm
    widths: Widths | None = None
    versions: dict[str, str] = field(default_factory=dict)
    load_s: float | None = None
    peak_rss_mib: float | None = None
    turns: list[Turn] = field(default_factory=list)
    single_ids: list[int] = field(default_factory=list)
    batch_ids: list[list[int]] = field(default_factory=list)
    failure: str | None = None

    @property
    def ran(self) -> bool:
        return self.failure is None and bool(self.turns)


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
            for result in rotated([each for each in results if each.failure is None], number):
                with _Failures(result, workers, tell):
                    tell(f"round {number + 1} of {settings.rounds}: {result.arm.name}")
                    worker = workers[result.arm.name]
                    worker.resume()
                    result.turns.append(_take_turn(result, worker, settings))
                    worker.pause()
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


def _take_turn(result: ArmResult, worker: WorkerProcess, settings: Settings) -> Turn:
    workload = settings.workload
    _warm_up(worker, settings)
    single, single_noise = with_noise(
        worker.pid,
        lambda: worker.ask("single", settings.timeout_s, ids=workload.single_prompt, tokens=workload.single_tokens),
        time.monotonic,
    )
    batch, batch_noise = with_noise(
        worker.pid,
        lambda: _ask_batch(worker, settings, workload.batch_prompts, workload.batch_tokens),
        time.monotonic,
    )
    _require_lengths(result.arm, single["ids"], batch["ids"], workload)
    if not result.turns:
        result.single_ids, result.batch_ids = single["ids"], batch["ids"]
    decode_s = single["total_s"] - single["first_token_s"]
    return Turn(
        ttft_ms=1000 * single["first_token_s"],
        decode_tok_s=(workload.single_tokens - 1) / decode_s,
        batch_output_tok_s=workload.batch_output_tokens / batch["total_s"],
        single_noise=single_noise,
        batch_noise=batch_noise,
    )


def _warm_up(worker: WorkerProcess, settings: Settings) -> None:
    """The shapes of what is measured, with other tokens: nothing can be remembered that helps."""
    workload = settings.workload
    worker.ask("single", settings.timeout_s, ids=workload.single_prompt[::-1], tokens=WARM_UP_TOKENS)
    prompts = [prompt[::-1] for prompt in workload.batch_prompts[: workload.active]]
    _ask_batch(worker, settings, prompts, WARM_UP_TOKENS)


def _ask_batch(worker: WorkerProcess, settings: Settings, prompts: list[list[int]], tokens: int) -> dict[str, Any]:
    return worker.ask("batch", settings.timeout_s, prompts=prompts, tokens=tokens)


def _require_lengths(arm: Arm, single: list[int], batch: list[list[int]], workload: Workload) -> None:
    expected = [workload.single_tokens, *[workload.batch_tokens] * len(workload.batch_prompts)]
    found = [len(ids) for ids in (single, *batch)]
    if found != expected:
        odd = next(
            (pair for pair in zip(found, expected, strict=False) if pair[0] != pair[1]), (len(found), len(expected))
        )
        raise WorkerError(
            f"{arm.name} gave {odd[0]} tokens or answers where {odd[1]} were asked for; its figures are void"
        )
