"""The server of one arm: brought up, emptied between turns, taken down; launched by us or running already."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median

from quantgate.arm_life.command_line import address_of, prepare_command
from quantgate.arm_life.ready import Readiness, probe_of, wait_until_ready
from quantgate.arm_life.server_output import ServerOutput
from quantgate.arm_life.server_process import ServerProcess
from quantgate.arm_life.settings import COMMAND_FIELD, LaunchSettings
from quantgate.targets.openai.endpoint import Endpoint, EndpointError
from quantgate.targets.openai.settings import EndpointSettings
from quantgate_engine.clock import Clock
from quantgate_engine.errors import ConfigurationError, RunError

_RUNNING_ALREADY_SECONDS = 5.0
"""A server that should be up already is not waited for while it loads weights."""

_CONNECT_SECONDS = 2.0
_DEATH_SECONDS = 1.0


class ArmServer:
    """Its methods may be called from one event loop after another, one at a time.

    log_path: where its output goes (None where the run keeps no text: servers may log prompts).
    folder: what a relative `cwd` counts from. loads: seconds of each start, from the command to ready.
    """

    def __init__(
        self,
        arm_id: str,
        endpoint: EndpointSettings,
        launch: LaunchSettings | None,
        *,
        clock: Clock,
        log_path: Path | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        new_endpoint: Callable[[EndpointSettings], Endpoint] = Endpoint,
    ) -> None:
        self.arm_id = arm_id
        self.endpoint = endpoint
        self.launch = launch or LaunchSettings()
        self._clock = clock
        self._log_path = log_path
        self._folder = folder or Path()
        self._environment = environment
        self._new_endpoint = new_endpoint
        self._process: ServerProcess | None = None
        self.loads: list[float] = []
        self._peaks: list[int] = []

    @property
    def is_launched(self) -> bool:
        """Whether it is ours to start and stop."""
        return self.launch.command is not None

    @property
    def is_up(self) -> bool:
        return self._process is not None and not self._process.has_exited()

    @property
    def load_seconds(self) -> float | None:
        """From the command to ready; the median where it was started several times."""
        return median(self.loads) if self.loads else None

    @property
    def peak_memory_bytes(self) -> int | None:
        """Largest resident memory of all its processes in main memory; None for a server that we did not launch."""
        current = [self._process.peak_memory_bytes] if self._process else []
        return max([*self._peaks, *current], default=None)

    def open_endpoint(self) -> Endpoint:
        """A client of its own, to be entered in the event loop that uses it."""
        return self._new_endpoint(self.endpoint)

    async def bring_up(self) -> None:
        """Returns when it serves. Raises RunError, EndpointError or ConfigurationError, with nothing left running."""
        if self.is_up:
            return
        await self.take_down()
        if self.is_launched:
            await self._start()
        else:
            await self._find_running()

    async def take_down(self) -> None:
        """Stops it where it is ours; nothing of it is left afterwards."""
        if self._process is None:
            return
        process, self._process = self._process, None
        try:
            await process.stop(self.launch.stop)
        finally:
            self._peaks.append(process.peak_memory_bytes)

    async def reset_prefix_cache(self) -> None:
        """Raises RunError where a reset is asked for and fails: arms with warm and with cold caches are not alike."""
        if not self.launch.reset_calls:
            return
        async with self.open_endpoint() as endpoint:
            try:
                for call in self.launch.reset_calls:
                    await (endpoint.get_text(call.path) if call.method == "GET" else endpoint.post_bytes(call.path, {}))
            except EndpointError as error:
                last_words = await self.last_words()
                told = f" {last_words}" if last_words else ""
                raise RunError(f"Arm {self.arm_id}, field launch.reset_prefix_cache: {error}{told}") from error

    def sample_memory(self) -> None:
        """Brings `peak_memory_bytes` up to date; takes milliseconds, so call it where no request is running."""
        if self._process is not None:
            self._process.sample_memory()

    async def last_words(self) -> str | None:
        """How its process ended and what it said; None where it runs, or is not ours."""
        deadline_ns = self._clock.now_ns() + round(_DEATH_SECONDS * 1e9)
        # A connection breaks a moment before its process has ended.
        while self.is_up and self._clock.now_ns() < deadline_ns:
            await asyncio.sleep(0.05)
        if self._process is None or self.is_up:
            return None
        if self._log_path is None:
            # Once it serves, its output may hold prompts; a run that keeps no text quotes none of it.
            return f"The server's process has ended ({self._process.state()})."
        return (
            f"The server's process has ended ({self._process.state()}; {self._process.last_lines()}); all that it "
            f"printed is in {self._log_path.name}."
        )

    async def _start(self) -> None:
        command = prepare_command(
            self.launch,
            self.endpoint.url,
            arm_id=self.arm_id,
            environment=os.environ if self._environment is None else self._environment,
            folder=self._folder,
        )
        await self._refuse_a_taken_port()
        started_ns = self._clock.now_ns()
        process = ServerProcess(command, ServerOutput(self._log_path), self._clock)
        try:
            async with self.open_endpoint() as endpoint:
                readiness = await wait_until_ready(
                    self.launch.ready, probe_of(endpoint), self._clock, exited=process.has_exited
                )
                if not readiness.ready:
                    raise await self._never_ready(readiness, process, endpoint)
        except BaseException:
            await process.stop(self.launch.stop)
            raise
        self.loads.append((self._clock.now_ns() - started_ns) / 1e9)
        self._process = process
        process.sample_memory()

    async def _refuse_a_taken_port(self) -> None:
        host, port = address_of(self.endpoint.url)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, writer = await asyncio.open_connection(host, port)
        except (OSError, TimeoutError):
            return
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        raise ConfigurationError(
            f"Arm {self.arm_id}: something serves at {self.endpoint.url} already, so the arm's own server cannot; stop "
            "it, give the arm another port, or leave launch (--launch-baseline, --launch-candidate) out to measure the "
            "server that is there."
        )

    async def _never_ready(self, readiness: Readiness, process: ServerProcess, endpoint: Endpoint) -> RunError:
        if readiness.exited:
            return RunError(
                f"The server of arm {self.arm_id} ended before it was ready ({process.state()}; "
                f"{process.last_lines()}); "
                f"check {COMMAND_FIELD}."
            )
        if readiness.key_refused:
            return await _told_by(endpoint, readiness.path)
        return RunError(
            f"The server of arm {self.arm_id} was not ready {self.launch.ready.timeout_s:g} s after its start: at "
            f"{self.endpoint.url}, {readiness.words} ({process.state()}; "
            f"{process.last_lines()}); check {COMMAND_FIELD} and the port in it, or raise launch.ready.timeout_s in a "
            "suite."
        )

    async def _find_running(self) -> None:
        seconds = min(self.launch.ready.timeout_s, _RUNNING_ALREADY_SECONDS)
        check = self.launch.ready.model_copy(update={"timeout_s": seconds})
        async with self.open_endpoint() as endpoint:
            readiness = await wait_until_ready(check, probe_of(endpoint), self._clock)
            if readiness.ready:
                return
            if readiness.key_refused:
                raise await _told_by(endpoint, readiness.path)
        raise readiness.error or RunError(
            f"The server of arm {self.arm_id} at {self.endpoint.url} is not ready ({readiness.words}); wait until it "
            "serves, or set launch.ready to what it answers."
        )


async def _told_by(endpoint: Endpoint, path: str) -> RunError:
    """The endpoint's own sentence for what it answers at `path`."""
    try:
        await endpoint.get_text(path)
    except EndpointError as error:
        return error
    return RunError(f"{endpoint.settings.url}{path}: refused the key once and then took it; run again.")
