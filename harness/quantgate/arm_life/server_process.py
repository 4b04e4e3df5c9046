"""A server as a process of ours: started in a session of its own, and always ended with all that it started."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from quantgate.arm_life.command_line import PreparedCommand
from quantgate.arm_life.process_tree import is_alive, live_members, peak_resident_bytes, signal_all
from quantgate.arm_life.server_output import ServerOutput
from quantgate.arm_life.settings import StopSettings
from quantgate_engine.clock import Clock
from quantgate_engine.errors import RunError

_CHILD_START = Path(__file__).with_name("child_start.py")
_POLL_SECONDS = 0.05
_REAP_SECONDS = 10.0


class ServerProcess:
    """One run of a server's command, from its start to its end; belongs to no event loop.

    Its session keeps Ctrl-C on the terminal from it: it is stopped when the run is done with it. Should this process
    die without stopping it, Linux sends it SIGTERM. Linux does so too when the thread ends that started it: start it
    from one that outlives it.
    """

    def __init__(self, command: PreparedCommand, output: ServerOutput, clock: Clock) -> None:
        """Starts it at once; `output` is closed with it. Raises RunError where Linux refuses."""
        self._command = command
        self._output = output
        self._clock = clock
        self.peak_memory_bytes = 0
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_CHILD_START), str(os.getpid()), *command.words],
                cwd=command.cwd,
                env=command.environment,
                stdin=subprocess.DEVNULL,
                stdout=output.file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            output.close()
            raise RunError(
                f"Cannot start {command.words[0]} in {command.cwd}: {error.strerror}; check both."
            ) from error
        atexit.register(self.kill)

    @property
    def pid(self) -> int:
        return self._popen.pid

    def has_exited(self) -> bool:
        return self._popen.poll() is not None

    def sample_memory(self) -> None:
        """Brings `peak_memory_bytes` up to date (see `peak_resident_bytes`); call it where no request is running."""
        self.peak_memory_bytes = max(self.peak_memory_bytes, peak_resident_bytes(live_members(self.pid)))

    def state(self) -> str:
        """Running, or how it ended, as a part of a sentence."""
        return _in_words(self._popen.poll())

    def last_lines(self) -> str:
        """The last lines of its output, as a part of a sentence."""
        lines = self._output.last_lines(self._command.secrets)
        return f"its last lines: {lines}" if lines else "it printed nothing"

    async def stop(self, settings: StopSettings) -> None:
        """Asks all its processes to end, waits for `grace_s`, kills what is left. Cancelling it kills at once."""
        self.sample_memory()
        members = live_members(self.pid)
        try:
            signal_all(members, signal.Signals[settings.signal])
            deadline_ns = self._clock.now_ns() + round(settings.grace_s * 1e9)
            while self._clock.now_ns() < deadline_ns and not self._is_gone(members):
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            self.kill(members)

    def kill(self, members: Sequence[psutil.Process] = ()) -> None:
        """Ends whatever is left of it, now; `members` may name processes that left its session and tree since."""
        left = [*members, *live_members(self.pid)]
        signal_all(left, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(_REAP_SECONDS)
        # The signal is sent, and its work may still be to do: ports and device memory are free when it is done.
        for _ in range(round(_REAP_SECONDS / _POLL_SECONDS)):
            if not any(map(is_alive, left)):
                break
            time.sleep(_POLL_SECONDS)
        atexit.unregister(self.kill)
        self._output.close()

    def _is_gone(self, members: Sequence[psutil.Process]) -> bool:
        return self.has_exited() and not any(map(is_alive, members)) and not live_members(self.pid)


def _in_words(exit_code: int | None) -> str:
    if exit_code is None:
        return "still running"
    if exit_code == -signal.SIGKILL:
        return "killed by SIGKILL, as Linux does when memory runs out"
    return f"ended by {signal.Signals(-exit_code).name}" if exit_code < 0 else f"exit code {exit_code}"
