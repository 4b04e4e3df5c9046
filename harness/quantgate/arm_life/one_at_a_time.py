"""One device for all arms: the next comes up when the last is down."""

from __future__ import annotations

from collections.abc import Mapping

from quantgate.arm_life.arm_server import ArmServer
from quantgate.arm_life.settings import COMMAND_FIELD
from quantgate_engine.errors import ConfigurationError


class OneAtATime:
    """Starts a server afresh for each turn of another arm.

    The A/A arm, whose server is the baseline's, is started afresh too: what a restart changes (which kernels were
    tuned, where memory lies) is then in the noise that the A/A pair measures, as it is in every other comparison.
    """

    exclusive = True

    def __init__(self, servers: Mapping[str, ArmServer]) -> None:
        """Raises ConfigurationError where a server is not ours to start and stop."""
        self.servers = dict(servers)
        self._current: str | None = None
        for arm_id, server in self.servers.items():
            if not server.is_launched:
                raise ConfigurationError(
                    f"Arm {arm_id} has no {COMMAND_FIELD}; one arm at a time needs to start and stop every server "
                    "itself: add the command, or run the arms side by side."
                )

    async def bring_up(self, arm_id: str) -> None:
        if self._current == arm_id and self.servers[arm_id].is_up:
            return
        await self.close()
        self._current = arm_id
        await self.servers[arm_id].bring_up()

    async def close(self) -> None:
        """At most one is up."""
        if self._current is not None:
            current, self._current = self._current, None
            await self.servers[current].take_down()
