"""The calls that the probe and the quality tiers make: a part of `targets.openai.endpoint.Endpoint`."""

from __future__ import annotations

from typing import Any, Protocol

from quantgate.targets.openai.whole_answer import MOST_BYTES


class ServerCalls(Protocol):
    """An open endpoint. Paths are relative to the server's root; every call raises EndpointError, also
    where the answer does not come to its end in its time and size."""

    async def get_json(self, path: str) -> Any: ...

    async def get_text(self, path: str) -> str: ...

    async def post_json(self, path: str, body: Any) -> Any: ...

    async def post_bytes(self, path: str, body: Any, most_bytes: int = MOST_BYTES) -> bytes: ...
