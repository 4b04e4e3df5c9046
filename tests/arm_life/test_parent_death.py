"""A server does not outlive quantgate, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import psutil
import pytest

PARENT = """
import os, signal, sys
from pathlib import Path
from quantgate.arm_life.command_line import PreparedCommand
from quantgate.arm_life.server_output import ServerOutput
from quantgate.arm_life.server_process import ServerProcess
from quantgate_engine.clock import MonotonicClock

script = "import signal, sys, time; DEAF; print('up', flush=True); time.sleep(600)"
words = [sys.executable, "-S", "-c", script]
process = ServerProcess(PreparedCommand(words, Path.cwd(), dict(os.environ)), ServerOutput(None), MonotonicClock())
while "up" not in process.last_lines():
    pass
print(process.pid, flush=True)
ENDING
"""
ENDINGS = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "pass", -signal.SIGKILL),
    "at its end, without a stop": ("sys.exit(0)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)", 0),
    "by an exception": ("raise RuntimeError", "signal.signal(signal.SIGTERM, signal.SIG_IGN)", 1),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_it_ends_when_quantgate_ends(how: str) -> None:
    ending, deaf, code = ENDINGS[how]
    source = PARENT.replace("ENDING", ending).replace("DEAF", deaf)
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
    assert ended.returncode == code
    server_pid = int(ended.stdout)
    deadline = time.monotonic() + 10
    while psutil.pid_exists(server_pid) and psutil.Process(server_pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the server lives on"
        time.sleep(0.02)
