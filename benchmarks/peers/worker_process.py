"""The comparing side of a worker: starts it, asks it, stops it while another engine is measured."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

CHUNK_BYTES = 1 << 16


class WorkerError(Exception):
    """What an engine could not do, in one sentence. The comparison goes on without it."""


class WorkerProcess:
    """One engine in a process of its own.

    name: how sentences call it. command: the words that start it. log: where what it prints goes.
    variables: environment of the process, whole.
    """

    def __init__(self, name: str, command: Sequence[str], variables: Mapping[str, str], log: Path) -> None:
        self._name, self._log = name, log
        self._unread = b""
        self._closed = False
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as errors:
            try:
                self._process = subprocess.Popen(
                    command,
                    env=dict(variables),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    # A group of its own, so that an engine's children stop and end with it.
                    start_new_session=True,
                )
            except OSError as error:
                raise WorkerError(f"{name} cannot be started: {command[0]}: {error.strerror}") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, command: str, timeout_s: float, **arguments: Any) -> dict[str, Any]:
        """The answer. Raises WorkerError where it dies, is silent for `timeout_s`, or answers with an error."""
        if self._closed:
            raise WorkerError(f"{self._name} has ended and cannot {command}; {self._where()}")
        self._send({"command": command, **arguments}, command)
        line = self._read_line(command, time.monotonic() + timeout_s, timeout_s)
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._end(f"{self._name} answered {command} with what is no JSON object")
        if "error" in answer:
            raise WorkerError(f"{self._name} failed to {command}: {answer['error'].rstrip('.')}; {self._where()}")
        return answer

    def pause(self) -> None:
        """Whatever threads it has, none of them computes, spins or wakes until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Ends it at once, paused or not. Calls after that do nothing: its number may be another process's by then."""
        if self._closed:
            return
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._closed = True
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _send(self, message: Mapping[str, Any], command: str) -> None:
        try:
            stream = _open(self._process.stdin)
            stream.write(json.dumps(message).encode() + b"\n")
            stream.flush()
        except OSError:
            raise self._died(command) from None

    def _read_line(self, command: str, deadline: float, timeout_s: float) -> bytes:
        stdout = _open(self._process.stdout).fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise self._end(f"{self._name} gave no answer to {command} within {timeout_s:g} s and was ended")
                chunk = os.read(stdout, CHUNK_BYTES)
                if not chunk:
                    raise self._died(command)
                self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _died(self, command: str) -> WorkerError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        code = self._process.returncode
        how = "its output closed" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
        return self._end(f"{self._name} died at {command} ({how}{self._last_words()})")

    def _end(self, sentence: str) -> WorkerError:
        self.close()
        return WorkerError(f"{sentence}; {self._where()}")

    def _where(self) -> str:
        return f"what it printed is in {self._log}"

    def _last_words(self) -> str:
        try:
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f": {last.rstrip('.')}" if last else ""

    def _signal(self, number: signal.Signals) -> None:
        if self._closed:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def _open(stream: Any) -> BinaryIO:
    if stream is None:
        raise ValueError("the worker was started without pipes")
    opened: BinaryIO = stream
    return opened
