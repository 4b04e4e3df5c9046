"""Requests over TCP, by aiohttp (docs/decisions/0011: why this library)."""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import aiohttp
from yarl import URL

from quantgate.targets.openai.stamped_socket import StampedSocket
from quantgate.targets.openai.transport import Received, TransportError
from quantgate_engine.clock import Clock

# Below the 5 s after which uvicorn, under most such servers, closes an idle connection: a request that is sent at that
# very moment would be lost, and counted as the failure of the server.
_KEEP_IDLE_S = 4.0
# aiohttp stops reading a connection whose reader lags by twice this; a burst of log-probs must not come to that.
_READ_BUFFER_BYTES = 1 << 20
# For a client that reads slowly by plan: two of these are about one event of a stream.
_SLOW_READ_BUFFER_BYTES = 128
# Above this aiohttp warns of bytes that are written in one go, and takes a file-like object instead.
_LARGE_BODY_BYTES = 1 << 20


class AiohttpTransport:
    """One connection for each request in flight, however many; idle ones are used again.

    No proxy, cookie, redirect or retry: what is measured is one exchange with one server.
    """

    def __init__(self, clock: Clock, *, connect_timeout_s: float, read_timeout_s: float) -> None:
        self._clock = clock
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout_s, sock_read=read_timeout_s)
        self._sockets: WeakValueDictionary[int, StampedSocket] = WeakValueDictionary()
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=_KEEP_IDLE_S,
            ttl_dns_cache=None,
            socket_factory=self._new_socket,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BUFFER_BYTES,
            # Small bytes on the wire may be gigabytes when they are unpacked.
            auto_decompress=False,
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, reads_slowly: bool = False
    ) -> AiohttpAnswer:
        if self._session is None:
            raise RuntimeError("the transport is not open")
        data = io.BytesIO(body) if body is not None and len(body) > _LARGE_BODY_BYTES else body
        with _breakages():
            response = await self._session.request(
                method,
                URL(url, encoded=True),
                headers=headers,
                data=data,
                allow_redirects=False,
                read_bufsize=_SLOW_READ_BUFFER_BYTES if reads_slowly else _READ_BUFFER_BYTES,
            )
        compression = response.headers.get("Content-Encoding", "identity").strip().lower()
        if compression not in ("", "identity"):
            response.close()
            raise TransportError("compressed", compression)
        return AiohttpAnswer(response, self._arrivals_of(response))

    def _new_socket(self, address: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol = address[:3]
        made = StampedSocket(family, kind, protocol, now_ns=self._clock.now_ns, wall_ns=time.time_ns)
        self._sockets[made.fileno()] = made
        return made

    def _arrivals_of(self, response: aiohttp.ClientResponse) -> Callable[[], int | None]:
        """The arrival times of the connection's socket; of an answer that is whole already, nobody knows them."""
        transport = response.connection.transport if response.connection is not None else None
        wrapped = transport.get_extra_info("socket") if transport is not None else None
        stamped = self._sockets.get(wrapped.fileno()) if wrapped is not None else None
        return _unknown if stamped is None else stamped.take_arrival_ns


class AiohttpAnswer:
    """See `transport.Answer`."""

    def __init__(self, response: aiohttp.ClientResponse, take_arrival_ns: Callable[[], int | None]) -> None:
        self._response = response
        self._take_arrival_ns = take_arrival_ns
        self._beside_head = response.content.read_nowait()
        if not self._beside_head:
            # That was the head's arrival; the first token may come much later.
            take_arrival_ns()
        self.status = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}

    async def body(self) -> AsyncGenerator[Received, None]:
        with _breakages():
            if self._beside_head:
                yield Received(self._beside_head, self._take_arrival_ns())
            async for data in self._response.content.iter_any():
                yield Received(data, self._take_arrival_ns())

    def close(self) -> None:
        self._response.close()


def _unknown() -> int | None:
    return None


def _distrust(error: Exception) -> str:
    """What TLS has against a server, without the library's own words around it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    return (reason or type(error).__name__).replace("_", " ").lower()


@contextmanager
def _breakages() -> Iterator[None]:
    """aiohttp's errors in our words, the special ones first."""
    try:
        yield
    except aiohttp.ClientConnectorDNSError as error:
        raise TransportError("unknown_host") from error
    except aiohttp.ClientConnectorCertificateError as error:
        raise TransportError("tls", _distrust(error.certificate_error)) from error
    except aiohttp.ClientSSLError as error:
        raise TransportError("tls", _distrust(error.os_error)) from error
    except aiohttp.ConnectionTimeoutError as error:
        raise TransportError("connect_timeout") from error
    except aiohttp.ClientConnectorError as error:
        if isinstance(error.os_error, ConnectionRefusedError):
            raise TransportError("refused") from error
        raise TransportError("unreachable", error.os_error.strerror or "") from error
    except TimeoutError as error:
        raise TransportError("read_timeout") from error
    except (
        aiohttp.ServerDisconnectedError,
        aiohttp.ClientPayloadError,
        aiohttp.ClientOSError,
        ConnectionError,
    ) as error:
        raise TransportError("closed") from error
    except (aiohttp.ClientResponseError, aiohttp.http_exceptions.HttpProcessingError) as error:
        raise TransportError("invalid", type(error).__name__) from error
