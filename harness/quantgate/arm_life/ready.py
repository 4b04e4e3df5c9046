"""Waiting until a server can serve."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from quantgate.arm_life.settings import ReadyCheck
from quantgate.targets.openai.endpoint import Endpoint, EndpointError
from quantgate_engine.clock import Clock

Probe = Callable[[str], Awaitable[int]]
"""GETs a path and returns the status; raises EndpointError where no HTTP answer comes."""

PROBE_SECONDS = 5.0
"""A server that takes longer to say how it is, is not ready."""

_NO_SUCH_PATH = frozenset({404, 405, 501})
_KEY_REFUSED = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Readiness:
    """The last look at a server. exited: its process ended; status, error: what `path` gave, both None for silence."""

    ready: bool = False
    exited: bool = False
    path: str = ""
    status: int | None = None
    error: EndpointError | None = None

    @property
    def key_refused(self) -> bool:
        return not self.ready and self.status in _KEY_REFUSED

    @property
    def words(self) -> str:
        """What was seen, as the end of a sentence."""
        if self.status is not None:
            return f"{self.path} answered with status {self.status}"
        return f"{self.path} did not answer" if self.error is None else f"{self.path} could not be reached"


def probe_of(endpoint: Endpoint) -> Probe:
    async def status(path: str) -> int:
        answer = await endpoint.send("GET", path)
        answer.close()
        return answer.status

    return status


async def wait_until_ready(
    check: ReadyCheck, probe: Probe, clock: Clock, *, exited: Callable[[], bool] = lambda: False
) -> Readiness:
    """Looks every `interval_s`, at least once, for `timeout_s` at most; the end of the process ends the wait.

    A refused key ends it too: no waiting makes a key right.
    """
    deadline_ns = clock.now_ns() + round(check.timeout_s * 1e9)
    while True:
        # First the process: where it has ended, whoever answers at its address is another server.
        if exited():
            return Readiness(exited=True)
        readiness = await _look(check, probe)
        if readiness.ready or readiness.key_refused or clock.now_ns() >= deadline_ns:
            return readiness
        await asyncio.sleep(check.interval_s)


async def _look(check: ReadyCheck, probe: Probe) -> Readiness:
    """The first path that the server knows decides; some serve their model list long before the model is loaded."""
    seen = Readiness()
    for path in check.paths:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                status = await probe(path)
        except TimeoutError:
            return Readiness(path=path)
        except EndpointError as error:
            return Readiness(path=path, error=error)
        seen = Readiness(ready=status == check.status, path=path, status=status)
        if seen.ready or status not in _NO_SUCH_PATH:
            break
    return seen
