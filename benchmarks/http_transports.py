"""Other HTTP clients behind the seam of quantgate's own, to measure them alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from urllib.parse import urlsplit

from quantgate.targets.openai.aiohttp_transport import AiohttpTransport
from quantgate.targets.openai.transport import Received, Transport
from quantgate_engine.clock import MonotonicClock


class HttpxAnswer:
    def __init__(self, response) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._body = response.aiter_raw()

    async def body(self) -> AsyncGenerator[Received, None]:
        async for data in self._body:
            yield Received(data, None)

    def close(self) -> None:
        """httpx closes a stream at its end."""


class HttpxTransport:
    async def open(self) -> None:
        import httpx

        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        self._client = httpx.AsyncClient(limits=limits, timeout=None)

    async def close(self) -> None:
        await self._client.aclose()

    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpxAnswer:
        request = self._client.build_request(method, url, headers=dict(headers), content=body)
        return HttpxAnswer(await self._client.send(request, stream=True))


class RawAnswer:
    """Takes the chunks of a chunked body apart, and nothing else: a lower bound of what a client costs."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        self.status = int(head.split(b" ", 2)[1])
        self.headers: Mapping[str, str] = {}
        self._reader = reader
        self._writer = writer

    async def body(self) -> AsyncGenerator[Received, None]:
        while length := int(await self._reader.readline(), 16):
            data = await self._reader.readexactly(length + 2)
            yield Received(data[:-2], None)
        await self._reader.readline()

    def close(self) -> None:
        self._writer.close()


class RawTransport:
    async def open(self) -> None:
        """A connection is opened for each request."""

    async def close(self) -> None:
        """Each answer closes its own."""

    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> RawAnswer:
        parts = urlsplit(url)
        fields = {"Host": parts.netloc, "Content-Length": str(len(body or b"")), **headers}
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 20)
        lines = [f"{method} {parts.path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))
        return RawAnswer(reader, writer, await reader.readuntil(b"\r\n\r\n"))


def aiohttp_transport() -> Transport:
    return AiohttpTransport(MonotonicClock(), connect_timeout_s=30.0, read_timeout_s=60.0)


CLIENTS: dict[str, Callable[[], Transport]] = {
    "aiohttp": aiohttp_transport,
    "httpx": HttpxTransport,
    "asyncio streams": RawTransport,
}
