"""The seam between what we say to a server and the socket that carries it.

Everything above it runs alike over TCP (`aiohttp_transport`) and over scripted answers on a virtual clock
(`scripted_transport`), so that what is tested exactly is what measures.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Breakage = Literal[
    "unknown_host",
    "refused",
    "unreachable",
    "connect_timeout",
    "tls",
    "read_timeout",
    "closed",
    "invalid",
    "compressed",
]
"""How a connection failed: no such name; nobody listens; no way there; no connection in time; no trust; silence for too
long; closed before the answer was whole; not HTTP; packed, though that was declined."""


class TransportError(Exception):
    """A connection that failed. `detail` is the cause in a few words, for the end of a sentence."""

    def __init__(self, breakage: Breakage, detail: str = "") -> None:
        super().__init__(detail or breakage)
        self.breakage = breakage
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes of an answer and when the first of them reached this machine (ns of the driver's clock; None: unknown)."""

    data: bytes
    arrived_ns: int | None


class Answer(Protocol):
    """An answer whose status and headers (names in lower case) have come; its body comes as it arrives."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def body(self) -> AsyncGenerator[Received, None]:
        """The body as it arrives, once. Raises TransportError where it breaks off before its end."""
        ...

    def close(self) -> None:
        """Gives the connection up; if the body is not at its end, the server sees a disconnect at once."""
        ...


class Transport(Protocol):
    """Carries requests. Each in-flight request has a connection of its own and never waits for another's."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, reads_slowly: bool = False
    ) -> Answer:
        """Returns when the head of the answer is there. Raises TransportError. Never retries, follows no redirect.

        reads_slowly: what is not asked for stays in the socket instead of being read ahead.
        """
        ...
