"""Runs one engine in the environment of its own and answers commands: python -P worker.py ADAPTER.py

Each line of standard input is a JSON object, and so is each line of the answers on standard output:

    {"command": "load", "precision": ..., "threads": 2, "cpus": [0, 1], "workload": {...}, "models": ...}
        -> {"load_s", "widths": {...}, "versions": {...}}
    {"command": "single", "ids": [...], "tokens": 128} -> {"ids", "first_token_s", "total_s", "token_times_s"}
    {"command": "batch", "prompts": [[...], ...], "tokens": 64} -> {"ids", "total_s"}
    {"command": "quit"} -> {"peak_rss_mib"}, and the process ends

A command that failed is answered with {"error": one sentence}. Standard library only.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import resource
import signal
import sys
import time
import traceback
import types
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

BENCHMARKS = Path(__file__).resolve().parent.parent
PR_SET_PDEATHSIG = 1

Answer = dict[str, Any]


class Worker:
    """One adapter and, after `load`, its engine."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter
        self._engine: Any = None
        self.done = False
        self.commands: dict[str, Callable[..., Answer]] = {
            "load": self.load,
            "single": self.single,
            "batch": self.batch,
            "quit": self.quit,
        }

    def load(self, precision: str, threads: int, cpus: list[int], workload: dict[str, Any], models: str) -> Answer:
        from benchmarks.peers.adapter import widths_of
        from benchmarks.peers.workload import Workload

        if hasattr(os, "sched_setaffinity"):
            # Before the engine's libraries look at how many processors there are.
            os.sched_setaffinity(0, cpus)
        started = time.perf_counter()
        self._engine = self._adapter.load(precision, threads, Workload(**workload), Path(models))
        load_s = time.perf_counter() - started
        description = self._adapter.DESCRIPTION
        return {
            "load_s": load_s,
            "widths": asdict(widths_of(description, precision, self._engine)),
            "versions": installed_versions(description.distributions),
        }

    def single(self, ids: list[int], tokens: int) -> Answer:
        return asdict(self._loaded().single(ids, tokens))

    def batch(self, prompts: list[list[int]], tokens: int) -> Answer:
        return asdict(self._loaded().batch(prompts, tokens))

    def quit(self) -> Answer:
        self.done = True
        return {"peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}

    def answer(self, line: str) -> Answer:
        try:
            arguments = json.loads(line)
            return self.commands[arguments.pop("command")](**arguments)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises, the comparison goes on without it
            traceback.print_exc()
            return {"error": " ".join(f"{type(error).__name__}: {error}".split())}

    def _loaded(self) -> Any:
        if self._engine is None:
            raise RuntimeError("nothing is loaded; the command load comes first")
        return self._engine


def installed_versions(distributions: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def import_adapter(file: Path) -> types.ModuleType:
    """The adapter's module. It may import `benchmarks.peers`, and nothing else of the repository.

    The root is not put on the path: a folder `kernels/` there would be taken for the package of that name for which
    transformers looks.
    """
    package = types.ModuleType("benchmarks")
    package.__path__ = [str(BENCHMARKS)]
    sys.modules["benchmarks"] = package
    spec = importlib.util.spec_from_file_location("peer_adapter", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def take_standard_streams() -> tuple[TextIO, TextIO]:
    """Commands and answers. Engines print to standard output, some from C: what they print goes to standard error."""
    commands = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return commands, answers


def die_with_parent() -> None:
    """A worker that is stopped would otherwise outlive a comparison that was killed, and keep its memory."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def main(adapter_file: str) -> None:
    die_with_parent()
    commands, answers = take_standard_streams()
    worker = Worker(import_adapter(Path(adapter_file)))
    for line in commands:
        answer = worker.answer(line)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        if worker.done:
            break
    # Some engines hang or crash while their threads are taken down, and there is nothing left to lose.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
