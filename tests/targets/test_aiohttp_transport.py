"""The socket itself, against small servers on this machine; nothing asserted depends on how fast the machine is."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from quantgate.targets.openai.aiohttp_transport import AiohttpTransport
from quantgate.targets.openai.transport import Breakage, TransportError
from quantgate_engine.clock import MonotonicClock

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nX-Kind: A\r\n\r\n"
END = b"0\r\n\r\n"
Connection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Head and body; empty when the client has closed."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    return head + (await reader.readexactly(int(lengths[0])) if lengths else b"")


async def served(
    connection: Connection, use: Callable[[AiohttpTransport, str], Awaitable[None]], silence_s: float = 60.0
) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await connection(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=1024)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    transport = AiohttpTransport(MonotonicClock(), connect_timeout_s=30.0, read_timeout_s=silence_s)
    await transport.open()
    try:
        await use(transport, url)
    finally:
        await transport.close()
        server.close()
        await server.wait_closed()


async def post(transport: AiohttpTransport, url: str, body: bytes = b"{}") -> bytes:
    answer = await transport.send("POST", f"{url}/v1/completions", {"A": "b"}, body)
    try:
        return b"".join([part.data async for part in answer.body()])
    finally:
        answer.close()


def test_an_answer_comes_in_the_pieces_that_the_server_sends() -> None:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        assert request.startswith(b"POST /v1/completions HTTP/1.1\r\n")
        assert request.endswith(b"\r\n\r\n" + b"x" * 3_000_000)
        writer.write(HEAD)
        for data in (b"one", b"two"):
            await go.acquire()
            writer.write(chunk(data))
        await go.acquire()
        writer.write(END)
        await writer.drain()

    go = asyncio.Semaphore(0)

    async def use(transport: AiohttpTransport, url: str) -> None:
        answer = await transport.send("POST", f"{url}/v1/completions", {}, b"x" * 3_000_000)
        assert (answer.status, answer.headers["x-kind"]) == (200, "A")
        clock = MonotonicClock()
        before_ns = clock.now_ns()
        body = answer.body()
        for data in (b"one", b"two"):
            go.release()
            received = await anext(body)
            assert received.data == data
            assert received.arrived_ns is not None
            # The kernel's stamp, moved to the driver's clock by two readings of the wall clock.
            assert before_ns - 1_000_000 <= received.arrived_ns <= clock.now_ns()
        go.release()
        with pytest.raises(StopAsyncIteration):
            await anext(body)
        answer.close()

    asyncio.run(served(connection, use))


@pytest.mark.skipif(sys.platform != "linux", reason="stamps of the kernel are Linux's")
def test_bytes_that_the_client_was_too_busy_to_read_carry_the_time_of_their_arrival() -> None:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD)
        writers.append(writer)
        await done.wait()

    writers: list[asyncio.StreamWriter] = []
    done = asyncio.Event()

    async def use(transport: AiohttpTransport, url: str) -> None:
        clock = MonotonicClock()
        answer = await transport.send("POST", url, {}, b"{}")
        # Linux begins to stamp a moment after a first socket asked for it; until then bytes carry the time of reading.
        await asyncio.sleep(0.2)
        writers[0].write(chunk(b"late") + END)  # Sent at once; then the client's loop is held up before it can read.
        held_until_ns = clock.now_ns() + 50_000_000
        while clock.now_ns() < held_until_ns:
            pass
        received = await anext(answer.body())
        answer.close()
        done.set()
        assert received.arrived_ns is not None
        assert received.arrived_ns < held_until_ns - 25_000_000

    asyncio.run(served(connection, use))


def test_closing_an_answer_early_is_a_disconnect_at_once() -> None:
    gone = asyncio.Event()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD + chunk(b"one"))
        assert await reader.read() == b""
        gone.set()

    async def use(transport: AiohttpTransport, url: str) -> None:
        answer = await transport.send("POST", url, {}, b"{}")
        assert (await anext(answer.body())).data == b"one"
        answer.close()
        async with asyncio.timeout(5):
            await gone.wait()

    asyncio.run(served(connection, use))


def test_a_connection_is_used_again_after_a_whole_answer() -> None:
    connections: list[int] = []

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        while await read_request(reader):
            writer.write(HEAD + chunk(b"one") + END)

    async def use(transport: AiohttpTransport, url: str) -> None:
        for _ in range(3):
            assert await post(transport, url) == b"one"

    asyncio.run(served(connection, use))
    assert len(connections) == 1


def test_three_hundred_requests_in_flight_have_a_connection_each() -> None:
    count = 300
    waiting = asyncio.Semaphore(0)
    all_there = asyncio.Event()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        waiting.release()
        await all_there.wait()
        writer.write(HEAD + chunk(b"one") + END)
        await writer.drain()

    async def use(transport: AiohttpTransport, url: str) -> None:
        posts = [asyncio.create_task(post(transport, url)) for _ in range(count)]
        for _ in range(count):
            await waiting.acquire()
        all_there.set()
        assert await asyncio.gather(*posts) == [b"one"] * count

    asyncio.run(served(connection, use))


@pytest.mark.parametrize(
    ("answer", "breakage"),
    [
        (b"", "closed"),
        (HEAD + chunk(b"one"), "closed"),
        (HEAD + b"zz\r\none\r\n", "invalid"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "invalid"),
    ],
)
def test_connections_that_break(answer: bytes, breakage: Breakage) -> None:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)
        await writer.drain()

    async def use(transport: AiohttpTransport, url: str) -> None:
        with pytest.raises(TransportError) as raised:
            await post(transport, url)
        assert raised.value.breakage == breakage

    asyncio.run(served(connection, use))


def test_what_is_packed_is_refused_before_it_is_unpacked() -> None:
    body = gzip.compress(b"0" * 1_000_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: GZIP\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(head + body)
        await writer.drain()

    async def use(transport: AiohttpTransport, url: str) -> None:
        with pytest.raises(TransportError) as raised:
            await post(transport, url)
        assert (raised.value.breakage, raised.value.detail) == ("compressed", "gzip")

    asyncio.run(served(connection, use))


def test_silence_is_a_timeout() -> None:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD + chunk(b"one"))
        await reader.read()

    async def use(transport: AiohttpTransport, url: str) -> None:
        with pytest.raises(TransportError) as raised:
            await post(transport, url)
        assert raised.value.breakage == "read_timeout"

    asyncio.run(served(connection, use, silence_s=0.05))


@pytest.mark.parametrize(
    ("url", "breakage"),
    [
        ("http://127.0.0.1:{free}", "refused"),
        ("http://no-such-host.invalid:80", "unknown_host"),
        ("https://127.0.0.1:{plain}", "tls"),
    ],
)
def test_connections_that_never_come_about(url: str, breakage: Breakage) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        free = held.getsockname()[1]

        async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        async def use(transport: AiohttpTransport, plain_url: str) -> None:
            plain = plain_url.rsplit(":", 1)[1]
            with pytest.raises(TransportError) as raised:
                await post(transport, url.format(free=free, plain=plain))
            assert raised.value.breakage == breakage

        asyncio.run(served(connection, use))


@pytest.mark.parametrize(
    ("os_error", "kind", "detail"),
    [
        (ssl.SSLCertVerificationError(1, "..."), aiohttp.ClientConnectorCertificateError, "self-signed certificate"),
        (ssl.SSLError(1, "..."), aiohttp.ClientConnectorSSLError, "wrong version number"),
    ],
)
def test_what_tls_has_against_a_server_is_said_without_the_librarys_own_words(
    monkeypatch: pytest.MonkeyPatch,
    os_error: ssl.SSLError,
    kind: type[aiohttp.ClientConnectorError],
    detail: str,
) -> None:
    """The attributes are those that OpenSSL's errors have."""
    os_error.reason = "WRONG_VERSION_NUMBER"
    if isinstance(os_error, ssl.SSLCertVerificationError):
        os_error.verify_message = "self-signed certificate"
    key = ConnectionKey("server", 443, is_ssl=True, ssl=True, proxy=None, proxy_auth=None, proxy_headers_hash=None)

    async def request(*_: object, **__: object) -> None:
        raise kind(key, os_error)

    monkeypatch.setattr(aiohttp.ClientSession, "request", request)

    async def use(transport: AiohttpTransport, url: str) -> None:
        with pytest.raises(TransportError) as raised:
            await post(transport, url)
        assert (raised.value.breakage, raised.value.detail) == ("tls", detail)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Nobody comes."""

    asyncio.run(served(connection, use))


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 307 Moved\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n")

    async def use(transport: AiohttpTransport, url: str) -> None:
        answer = await transport.send("POST", url, {}, b"{}")
        assert answer.status == 307
        answer.close()

    asyncio.run(served(connection, use))


@pytest.mark.parametrize("reads_slowly", [False, True])
def test_what_a_slow_reader_does_not_ask_for_stays_in_the_socket(reads_slowly: bool) -> None:
    """An answer of 1 MiB: more than one read of a socket brings, less than what is read ahead for others."""
    pieces = 16

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD)
        for _ in range(pieces):
            writer.write(chunk(b"x" * (1 << 16)))
            await writer.drain()
        writer.write(END)
        await writer.drain()
        await reader.read()

    async def use(transport: AiohttpTransport, url: str) -> None:
        answer = await transport.send("POST", url, {}, b"{}", reads_slowly=reads_slowly)
        body = answer.body()
        size = len((await anext(body)).data)
        content = answer._response.content
        held = answer._response.connection
        assert held is not None
        assert held.transport is not None
        async with asyncio.timeout(30):
            while held.transport.is_reading() if reads_slowly else content.total_bytes < pieces << 16:
                await asyncio.sleep(0.001)
        assert (content.total_bytes < pieces << 16) == reads_slowly
        async for received in body:
            size += len(received.data)
        assert size == pieces << 16
        answer.close()

    asyncio.run(served(connection, use))
