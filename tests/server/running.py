"""A server on a free port, in a thread of this process, so that a test can look into its engine."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from quantgate_engine import LLM
from quantgate_engine.server.app import create_app
from quantgate_engine.server.serve import DrainingServer, bind, url_of
from quantgate_engine.server.service import Service
from quantgate_engine.server.settings import ServerSettings
from quantgate_engine.stepped_engine import SteppedEngine

LIMIT_S = 30
"""Only to turn a hang into a failure."""

STARTED_S = 1_700_000_000


class RunningServer:
    def __init__(self, llm: LLM, core: SteppedEngine | None = None, **settings: object) -> None:
        app = create_app(llm, ServerSettings(served_name="tiny", **settings), lambda: float(STARTED_S), core)
        self.service: Service = app.state.service
        self.llm = llm
        self._listening = bind("127.0.0.1", 0)
        self.url = url_of(self._listening)
        self._ready = threading.Event()
        self._server = DrainingServer(app, self._ready.set)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listening]}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(LIMIT_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.begin_drain()
        self.begin_drain()
        self.join()

    def begin_drain(self) -> None:
        self._server.begin_drain()

    def join(self) -> None:
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()
        self._listening.close()

    def num_tasks(self) -> int:
        """asyncio tasks of the server, this question not counted."""
        loop = self._server._loop
        assert loop is not None

        async def count() -> int:
            return len(asyncio.all_tasks()) - 1

        return asyncio.run_coroutine_threadsafe(count(), loop).result(LIMIT_S)

    def is_quiet(self) -> bool:
        """No request in the house, none in the engine, no block held."""
        core, service = self.llm.core, self.service
        return service.gate.inside == 0 and not core.has_work and core.held_blocks == 0


def wait_until(condition: Callable[[], bool]) -> None:
    """Fails where it does not come true in time."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)
