"""A client of one OpenAI-compatible server: whole answers, and answers that stream."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from quantgate.json_text import parse_json
from quantgate.targets.openai.aiohttp_transport import AiohttpTransport
from quantgate.targets.openai.errors import (
    EndpointError,
    EndpointSettingError,
    broken_connection,
    not_an_api,
    one_line,
    refused_by_status,
    said_in,
)
from quantgate.targets.openai.settings import EndpointSettings
from quantgate.targets.openai.transport import Answer, Transport, TransportError
from quantgate.targets.openai.whole_answer import MOST_BYTES, longest_seconds, read_whole, took_too_long
from quantgate_engine.clock import Clock, MonotonicClock

__all__ = ["Endpoint", "EndpointError"]

_ERROR_BYTES = 65536
# A status is known before its explanation, which must not keep the request that failed from being told.
_ERROR_SECONDS = 5.0


class Endpoint:
    """Paths are relative to the server's root, such as "/v1/completions".

    Answers that are returned whole have a longest time and size (`whole_answer`); what `send` and `stream` return is
    bounded by whoever reads it. Every call raises EndpointError, whose message is one sentence for the user; none
    retries. Open it in the event loop that uses it. `clock` is the driver's; `transport` replaces TCP in tests;
    `environment` holds the key.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        *,
        transport: Transport | None = None,
        clock: Clock | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.settings = settings
        self._transport = transport or AiohttpTransport(
            clock or MonotonicClock(),
            connect_timeout_s=settings.connect_timeout_s,
            read_timeout_s=settings.read_timeout_s,
        )
        self._environment = environment
        self._key = ""
        self._headers: dict[str, str] = {}

    async def open(self) -> None:
        environment = os.environ if self._environment is None else self._environment
        self._key = environment.get(self.settings.key_env, "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            # No HTTP header can carry it, and the error of the library would show it.
            raise EndpointSettingError(
                f"The environment variable {self.settings.key_env} holds characters that no API key has; set it anew.",
                "connect",
            )
        # No compression: a server that compresses a stream holds tokens back until its buffer is full.
        self._headers = {"Accept-Encoding": "identity"}
        if self._key:
            self._headers["Authorization"] = f"Bearer {self._key}"
        await self._transport.open()

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def url_of(self, path: str) -> str:
        return self.settings.url + path

    def without_key(self, text: str) -> str:
        """What a server said, without the API key, should it have quoted it."""
        return text.replace(self._key, "[API key]") if self._key else text

    async def get_json(self, path: str) -> Any:
        return self._parse(path, await self._whole("GET", path))

    async def get_text(self, path: str) -> str:
        return (await self._whole("GET", path)).decode("utf-8", errors="replace")

    async def post_json(self, path: str, body: Any) -> Any:
        return self._parse(path, await self._whole("POST", path, body))

    async def post_bytes(self, path: str, body: Any, most_bytes: int = MOST_BYTES) -> bytes:
        return await self._whole("POST", path, body, most_bytes)

    async def send(self, method: str, path: str, body: Any = None, *, reads_slowly: bool = False) -> Answer:
        """The answer as soon as its head is there, whatever its status; the caller closes it.

        reads_slowly: as in `Transport.send`.
        """
        headers = self._headers | ({} if body is None else {"Content-Type": "application/json"})
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        try:
            return await self._transport.send(method, self.url_of(path), headers, data, reads_slowly=reads_slowly)
        except TransportError as error:
            raise broken_connection(self.url_of(path), error) from None

    async def stream(self, path: str, body: Any, *, reads_slowly: bool = False) -> Answer:
        """As `send` with POST; raises EndpointError unless the status is 200."""
        answer = await self.send("POST", path, body, reads_slowly=reads_slowly)
        if answer.status == 200:
            return answer
        try:
            raise await self._refusal(path, answer)
        finally:
            answer.close()

    async def _whole(self, method: str, path: str, body: Any = None, most_bytes: int = MOST_BYTES) -> bytes:
        seconds = longest_seconds(method, self.settings)
        try:
            async with asyncio.timeout(seconds):
                return await self._answer_to(method, path, body, most_bytes)
        except TransportError as error:
            raise broken_connection(self.url_of(path), error) from None
        except TimeoutError:
            raise took_too_long(self.url_of(path), method, seconds) from None

    async def _answer_to(self, method: str, path: str, body: Any, most_bytes: int) -> bytes:
        answer = await self.send(method, path, body)
        try:
            if answer.status != 200:
                raise await self._refusal(path, answer)
            return await read_whole(self.url_of(path), answer, most_bytes)
        finally:
            answer.close()

    async def _refusal(self, path: str, answer: Answer) -> EndpointError:
        body = bytearray()
        try:
            async with asyncio.timeout(_ERROR_SECONDS):
                async for part in answer.body():
                    body += part.data
                    if len(body) >= _ERROR_BYTES:
                        break
        except (TransportError, TimeoutError):
            # The status says enough where its explanation breaks off.
            body.clear()
        return refused_by_status(
            self.url_of(path),
            answer.status,
            self.without_key(_pointed_to(answer) or said_in(bytes(body[:_ERROR_BYTES]))),
            key_env=self.settings.key_env,
            key_sent=bool(self._key),
            retry_after_s=_seconds(answer.headers.get("retry-after")),
        )

    def _parse(self, path: str, body: bytes) -> Any:
        try:
            return parse_json(body)
        except ValueError:
            what = "a web page" if body.lstrip().startswith(b"<") else "no JSON"
            raise not_an_api(self.url_of(path), what) from None


def _pointed_to(answer: Answer) -> str:
    """Where a redirect points; empty for any other answer."""
    target = answer.headers.get("location") if answer.status // 100 == 3 else None
    return f"to {one_line(target)}" if target else ""


def _seconds(retry_after: str | None) -> float | None:
    """The header's number of seconds; its other form, a date, is left aside: clocks of two machines differ."""
    try:
        seconds = float(retry_after or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
