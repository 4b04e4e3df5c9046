"""Runs the tests of `interpreted`, each file in a process of its own, with Triton as an interpreter.

Triton decides when it is imported whether it interprets or compiles, and cannot do both in one process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.gpu.triton_processes import MISSING, TRITONS, run_python

FILES = sorted(Path(__file__).with_name("interpreted").glob("test_*.py"))
MOST_PROCESSES = 8
"""Each takes one processor and half a gigabyte."""

Runs = dict[tuple[Path, str], Future[CompletedProcess[str]]]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """Of every file and version that is asked for, begun with the first of them, one on each processor."""
    own = [item for item in request.session.items if item.path == request.path]
    asked = [item.callspec.params for item in own if isinstance(item, pytest.Function)]
    with ThreadPoolExecutor(min(os.cpu_count() or 1, MOST_PROCESSES)) as pool:
        yield {
            (parameters["file"], parameters["triton"]): pool.submit(_run, **parameters)
            for parameters in asked if MISSING[parameters["triton"]] is None
        }  # fmt: skip
        pool.shutdown(cancel_futures=True)


def _run(file: Path, triton: str) -> CompletedProcess[str]:
    return run_python(["-m", "pytest", "-p", "no:cacheprovider", str(file)], triton, TRITON_INTERPRET="1")


@pytest.mark.parametrize("triton", TRITONS)
@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_passes_in_the_interpreter(file: Path, triton: str, runs: Runs) -> None:
    finished = runs[file, triton].result()
    if finished.returncode:
        pytest.fail(f"{finished.stdout[-6000:]}\n{finished.stderr[-2000:]}", pytrace=False)
