"""An adapter whose times are a script: workers of the tests run it by its path, in this environment."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from benchmarks.peers.adapter import BatchAnswer, Engine, SingleAnswer
from benchmarks.peers.description import EngineDescription, Precision, Widths
from benchmarks.peers.workload import Workload

WIDTHS = Widths("16 bits", "16 bits", "16 bits", "16 bits")

DESCRIPTION = EngineDescription(
    name="scripted",
    environment=None,
    distributions=("pytest", "no-such-distribution"),
    precisions=tuple(
        Precision(name, 16, WIDTHS)
        for name in ("fast", "slow", "chatty", "cannot-load", "dies-at-batch", "hangs-at-single", "raises", "short")
    ),
)

SECONDS_PER_TOKEN = {"slow": 0.02}
USUAL_SECONDS_PER_TOKEN = 0.01


class Scripted:
    def __init__(self, precision: str, active: int) -> None:
        self._precision, self._active = precision, active
        self._token_s = SECONDS_PER_TOKEN.get(precision, USUAL_SECONDS_PER_TOKEN)

    def single(self, ids: list[int], tokens: int) -> SingleAnswer:
        if self._precision == "hangs-at-single":
            time.sleep(600)
        if self._precision == "raises":
            raise RuntimeError("the cache is\nfull.")
        if self._precision == "chatty":
            print("not JSON", flush=True)
            os.write(1, b"nor is this, and it is not Python's\n")
        first_s = 10 * self._token_s
        return SingleAnswer(self._answer(ids, tokens), first_s, first_s + (tokens - 1) * self._token_s)

    def batch(self, prompts: list[list[int]], tokens: int) -> BatchAnswer:
        if self._precision == "dies-at-batch":
            print("out of memory", file=sys.stderr, flush=True)
            os.abort()
        answers = [self._answer(prompt, tokens) for prompt in prompts]
        return BatchAnswer(answers, len(prompts) * tokens * self._token_s / self._active)

    def _answer(self, ids: list[int], tokens: int) -> list[int]:
        tokens -= self._precision == "short"
        return [(sum(ids) + index) % 1000 for index in range(tokens)]


def load(precision: str, threads: int, workload: Workload, models: Path) -> Engine:
    if precision == "cannot-load":
        raise FileNotFoundError(f"{models}/weights is missing")
    return Scripted(precision, workload.active)
