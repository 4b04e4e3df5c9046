"""Watches the servers' metrics while cells run, without touching the requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa

from quantgate.replay.interleave import Cell
from quantgate.server_metrics.exposition import ExpositionError
from quantgate.server_metrics.failures import Failures
from quantgate.server_metrics.phases import Phase, Scrape, rows_of_cell
from quantgate.server_metrics.scrape import read_scrape
from quantgate.store.schemas import SERVER_METRICS
from quantgate.targets.openai.endpoint import EndpointError
from quantgate_engine.clock import Clock

Fetch = Callable[[], Awaitable[str]]
"""Asks a server for the text of its metrics; raises EndpointError."""

DEFAULT_INTERVAL_SECONDS = 2.0
_TIMEOUT_SECONDS = 2.0
_SCRAPES_AT_ONE_PACE = 120
"""After so many the interval doubles: a cell of hours must not fill the memory with texts."""


class ServerMetricsRecorder:
    """Scrapes before, every `interval_seconds` during, and after each cell; a scrape that fails is a note.

    While requests run, only the text is fetched, by a task of its own; it is parsed when they have ended, because
    parsing hundreds of kilobytes would hold up the loop that stamps tokens.
    """

    def __init__(
        self,
        fetch: Mapping[str, Fetch],
        *,
        clock: Clock,
        origin_ns: int,
        interval_seconds: float = DEFAULT_INTERVAL_SECONDS,
    ) -> None:
        """`fetch` by arm id; arms that are not in it have no metrics. `origin_ns`: the run's start on `clock`."""
        self._fetch = dict(fetch)
        self._clock = clock
        self._origin_ns = origin_ns
        self._interval_seconds = interval_seconds
        self._rows: list[dict[str, Any]] = []
        self._failures: dict[str, Failures] = {}

    def table(self) -> pa.Table:
        """All rows so far, in the schema of the store."""
        return pa.Table.from_pylist(self._rows, schema=SERVER_METRICS)

    def notes(self) -> dict[str, str]:
        """For each arm whose scrapes did not all succeed, one sentence."""
        return {arm_id: failures.sentence for arm_id, failures in self._failures.items()}

    @asynccontextmanager
    async def watch_cell(self, cell: Cell) -> AsyncIterator[None]:
        """A hook for `run_replay`: scrapes on entering, meanwhile and on leaving, unless the cell breaks off."""
        arm_id = cell.arm_id
        if arm_id not in self._fetch or self._is_given_up(arm_id):
            yield
            return
        texts: list[tuple[Phase, int, str]] = []
        await self._scrape(arm_id, "before", texts)
        meanwhile = asyncio.create_task(self._scrape_meanwhile(arm_id, texts))
        try:
            yield
        except BaseException:
            await _ended(meanwhile)
            self._keep(arm_id, texts)
            raise
        await _ended(meanwhile)
        if not self._is_given_up(arm_id):
            await self._scrape(arm_id, "after", texts)
        self._keep(arm_id, texts)

    async def _scrape_meanwhile(self, arm_id: str, texts: list[tuple[Phase, int, str]]) -> None:
        interval_seconds, scrapes = self._interval_seconds, 0
        while not self._is_given_up(arm_id):
            await asyncio.sleep(interval_seconds)
            await self._scrape(arm_id, "during", texts)
            scrapes += 1
            if scrapes % _SCRAPES_AT_ONE_PACE == 0:
                interval_seconds *= 2

    async def _scrape(self, arm_id: str, phase: Phase, texts: list[tuple[Phase, int, str]]) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                text = await self._fetch[arm_id]()
        except TimeoutError:
            self._failed(arm_id, f"no answer within {_TIMEOUT_SECONDS:g} s")
        except EndpointError as error:
            self._failed(arm_id, str(error).rstrip("."), error.status)
        else:
            texts.append((phase, self._clock.now_ns() - self._origin_ns, text))

    def _keep(self, arm_id: str, texts: list[tuple[Phase, int, str]]) -> None:
        scrapes = []
        for phase, time_ns, text in texts:
            try:
                scrapes.append(Scrape(phase, time_ns, read_scrape(text)))
            except ExpositionError as error:
                self._failed(arm_id, str(error))
        self._rows += rows_of_cell(arm_id, scrapes)

    def _failed(self, arm_id: str, why: str, status: int | None = None) -> None:
        self._failures.setdefault(arm_id, Failures()).add(why, status)

    def _is_given_up(self, arm_id: str) -> bool:
        return arm_id in self._failures and self._failures[arm_id].are_final


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancels the task and waits for it, without taking a cancellation of the caller for the task's."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
