"""A compilation that is interrupted, or killed: nothing of it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.gpu.triton_processes import INSTALLED, MISSING, ROOT

LONGEST_END_S = 60

pytestmark = pytest.mark.skipif(MISSING[INSTALLED] is not None, reason=str(MISSING[INSTALLED]))


@pytest.fixture
def compiling(tmp_path: Path) -> subprocess.Popen[str]:
    """In a group of its own, with a worker or more at work."""
    variables = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    folders = [str(ROOT / name) for name in ("harness", "engine", "kernels")]
    variables.update(PYTHONPATH=os.pathsep.join(folders), TRITON_CACHE_DIR=str(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-m", "quantgate_kernels.gpu.ahead", "sm80"],
        env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True, preexec_fn=_heed_interrupts,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith("{")
    return process


def _heed_interrupts() -> None:
    """As from a terminal; what a shell's background job starts ignores them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    workers = psutil.Process(process.pid).children()
    assert workers
    return workers


def test_ctrl_c_ends_all_processes(compiling: subprocess.Popen[str]) -> None:
    workers = workers_of(compiling)
    os.killpg(compiling.pid, signal.SIGINT)
    compiling.communicate(timeout=LONGEST_END_S)
    assert compiling.returncode == 128 + signal.SIGINT
    assert psutil.wait_procs(workers, timeout=LONGEST_END_S)[1] == []


def test_workers_end_with_a_parent_that_is_killed(compiling: subprocess.Popen[str]) -> None:
    workers = workers_of(compiling)
    compiling.kill()
    compiling.communicate(timeout=LONGEST_END_S)
    assert psutil.wait_procs(workers, timeout=LONGEST_END_S)[1] == []
