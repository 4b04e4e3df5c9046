"""All arms up for the whole run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from quantgate.arm_life.arm_server import ArmServer
from quantgate_engine.errors import ConfigurationError


class SideBySide:
    """Launches each server when it is first asked for and keeps it; servers that run already are only looked at."""

    exclusive = False

    def __init__(self, servers: Mapping[str, ArmServer]) -> None:
        """Raises ConfigurationError where two servers are to be launched at one address."""
        self.servers = dict(servers)
        at: dict[str, str] = {}
        for server in dict.fromkeys(self.servers.values()):
            if server.is_launched and at.setdefault(server.endpoint.url, server.arm_id) != server.arm_id:
                raise ConfigurationError(
                    f"Arms {at[server.endpoint.url]} and {server.arm_id} both launch a server at "
                    f"{server.endpoint.url}; give each a port of its own, or run one arm at a time."
                )

    async def bring_up(self, arm_id: str) -> None:
        await self.servers[arm_id].bring_up()

    async def close(self) -> None:
        distinct = dict.fromkeys(self.servers.values())
        ended = await asyncio.gather(*(server.take_down() for server in distinct), return_exceptions=True)
        for outcome in ended:
            if isinstance(outcome, BaseException):
                raise outcome
