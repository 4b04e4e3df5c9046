"""Tells a dead server from one failed request."""

from __future__ import annotations

import asyncio

from quantgate.targets.base import TargetGoneError
from quantgate.targets.openai.endpoint import Endpoint
from quantgate.targets.openai.errors import EndpointError

_CHECKS = 3
_GAP_S = 0.5
_PATIENCE_S = 2.0
# What a dead server looks like from here; a status, an unreadable answer or silence come from a living one.
_SIGNS_OF_DEATH = frozenset({"refused", "unreachable", "closed"})


class Liveness:
    """Raises TargetGoneError once a server that had answered refuses several connections in a row.

    One check serves all requests that break at the same time; a server that is back by then is alive.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._answers = 0
        self._check: asyncio.Task[bool] | None = None

    def note_answer(self) -> None:
        self._answers += 1

    async def examine(self, error: EndpointError) -> None:
        """Called with each failure of a request."""
        if self._answers == 0 or error.breakage not in _SIGNS_OF_DEATH:
            return
        if self._check is None or self._check.done():
            self._check = asyncio.create_task(self._is_gone())
        # A request that is cancelled meanwhile must not cancel the check of the others.
        if await asyncio.shield(self._check):
            raise TargetGoneError(
                f"{self._endpoint.settings.url}: the server is gone, it takes no more connections after "
                f"{self._answers} answers; look at its log (the last failure was: {str(error).rstrip('.')})."
            )

    async def close(self) -> None:
        if self._check is not None:
            self._check.cancel()
            await asyncio.wait([self._check])
            self._check = None

    async def _is_gone(self) -> bool:
        for check in range(_CHECKS):
            if check:
                await asyncio.sleep(_GAP_S)
            if not await self._refuses():
                return False
        return True

    async def _refuses(self) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                answer = await self._endpoint.send("GET", "/v1/models")
        except TimeoutError:
            return False
        except EndpointError as error:
            return error.breakage in _SIGNS_OF_DEATH
        answer.close()
        return False
