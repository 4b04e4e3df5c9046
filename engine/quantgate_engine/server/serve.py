"""Running the application: a socket, uvicorn, and an end that loses no request which still has time."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.server.service import Service

# After the drain nothing should be left; connections whose client never reads are cut off.
_CLOSING_S = 5

# Longer than the clients of a replay pause: one that sends just as its idle connection is closed sees a failure.
_KEEP_ALIVE_S = 75


def bind(host: str, port: int) -> socket.socket:
    """A socket that holds the address (port 0: a free one) and does not listen yet, so that clients are refused.

    Raises ConfigurationError where the address is not to be had.
    """
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise ConfigurationError(
            f"{host}:{port} cannot be served on ({error}); choose another --host or --port (0 takes a free port)."
        ) from error
    return listening


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    app: FastAPI, listening: socket.socket, on_ready: Callable[[], None], on_drain: Callable[[int], None]
) -> None:
    """Serves until SIGTERM or SIGINT, then drains (see `DrainingServer`) and returns. on_ready: requests may come.

    on_drain: the server was told to end, and so many answers are still to be waited for. From its return on the
    process ignores those signals: what they ask for is done. Raises RunError where the application does not start.
    """
    server = DrainingServer(app, on_ready, on_drain)
    server.run(sockets=[listening])
    if not server.started:
        raise RunError("The server did not start; the lines above say why.")


class DrainingServer(uvicorn.Server):
    """Uvicorn with another end.

    At the first signal it goes on listening, so that health checks and new requests are answered with 503, while what
    runs may come to its end; after `drain_s`, or at a second signal, the rest is given up (cause: shutdown).
    """

    def __init__(
        self, app: FastAPI, on_ready: Callable[[], None], on_drain: Callable[[int], None] = lambda _waiting: None
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="on",
                # Whoever asks for a WebSocket is answered as by any plain HTTP server.
                ws="none",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                headers=[("Server", "quantgate")],
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_CLOSING_S,
            )
        )
        self._service: Service = app.state.service
        self._on_ready = on_ready
        self._on_drain = on_drain
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drain: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._loop = asyncio.get_running_loop()
            self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Uvicorn's, and then none: until the process is gone, an impatient signal must not change its exit code."""
        with super().capture_signals():
            yield
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """Uvicorn's signal handler; unlike its own, it leaves no signal to raise again, so that the exit code is 0."""
        self.begin_drain()

    def begin_drain(self) -> None:
        """Tells the server to end; a second call tells it to hurry. From any thread, and from signal handlers."""
        if self._loop is None:
            self.should_exit = True
        else:
            self._loop.call_soon_threadsafe(self._begin_drain)

    def _begin_drain(self) -> None:
        if self._drain is None:
            self._drain = asyncio.create_task(self._drain_and_exit())
        else:
            self._hurry.set()

    async def _drain_and_exit(self) -> None:
        service = self._service
        service.gate.draining = True
        self._on_drain(service.gate.inside)
        waits = {asyncio.create_task(service.gate.wait_empty()), asyncio.create_task(self._hurry.wait())}
        await asyncio.wait(waits, timeout=service.settings.drain_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await service.engine.stop()
        self.should_exit = True
