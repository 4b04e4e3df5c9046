"""How many requests are in the house, and whether more may come in."""

from __future__ import annotations

import asyncio

from quantgate_engine.counted import counted
from quantgate_engine.server.api_error import ApiError, unavailable

_RETRY_AFTER_S = 1.0


class Gate:
    """Counts engine requests from the last byte of their bodies to the last of their answers.

    capacity: those that the engine runs and those that may wait.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._inside = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self.draining = False

    @property
    def inside(self) -> int:
        return self._inside

    @property
    def capacity(self) -> int:
        return self._capacity

    def check_room(self, count: int = 1) -> None:
        """Raises ApiError 503 where the server is about to stop, or has not so many places now."""
        if self.draining:
            raise unavailable("The server is shutting down; send the request to another one.", "shutting_down")
        self._check_places(count)

    def enter(self) -> Ticket:
        """Lets one request in; raises ApiError 503 where the server is full or about to stop."""
        self.check_room()
        ticket = Ticket(self)
        ticket.widen(1)
        return ticket

    async def wait_empty(self) -> None:
        await self._empty.wait()

    def _admit(self, count: int, held: int) -> None:
        if held + count > self._capacity:
            raise ApiError(
                400,
                f"The request asks for {counted(held + count, 'answer')} (its prompts times n), and this server has "
                f"room for {self._capacity} at most; send fewer at a time.",
                code="too_many_answers",
            )
        self._check_places(count)
        self._inside += count
        self._empty.clear()

    def _check_places(self, count: int) -> None:
        if self._inside + count > self._capacity:
            raise unavailable(
                f"The server has {counted(self._inside, 'request')}, and room for {self._capacity}; try again shortly.",
                "queue_full",
                _RETRY_AFTER_S,
            )

    def _leave(self, count: int) -> None:
        self._inside -= count
        if self._inside == 0:
            self._empty.set()


class Ticket:
    """One HTTP request's place; it may take more where it asks for several answers."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._width = 0

    def widen(self, count: int) -> None:
        """Takes `count` more places. Raises ApiError 503 where they are not to be had now, 400 where they never are."""
        self._gate._admit(count, self._width)
        self._width += count

    def leave(self) -> None:
        self._gate._leave(self._width)
        self._width = 0
