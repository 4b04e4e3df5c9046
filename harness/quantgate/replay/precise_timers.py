"""An asyncio event loop whose timers are not rounded up to whole milliseconds.

epoll waits in milliseconds, so that on Linux every request would leave up to one late, and TTFT counts from the
schedule. select(2) waits in microseconds; it is asked about a single descriptor, that of the epoll set.
"""

from __future__ import annotations

import asyncio
import select
import selectors

# select(2) knows no descriptors above (FD_SETSIZE).
_DESCRIPTORS = 1024


def precise_loop() -> asyncio.AbstractEventLoop:
    """A new event loop, for `asyncio.Runner(loop_factory=precise_loop)`; the ordinary one where there is no epoll."""
    if not hasattr(selectors, "EpollSelector"):
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(_MicrosecondSelector())


if hasattr(selectors, "EpollSelector"):

    class _MicrosecondSelector(selectors.EpollSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is not None and timeout > 0 and self.fileno() < _DESCRIPTORS:
                select.select([self.fileno()], [], [], timeout)
                timeout = 0
            return super().select(timeout)
