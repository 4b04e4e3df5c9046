"""Notices a client that goes away while its request is worked on, waiting or streaming."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

Result = TypeVar("Result")


class ClientLeftError(Exception):
    """The client closed its connection: nobody reads an answer."""


async def unless_client_leaves(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work`; where the client leaves first, `work` is cancelled and ClientLeftError raised.

    The request's body must have been read: all that is left to receive is the disconnect.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_client_leaves(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientLeftError
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _client_leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
