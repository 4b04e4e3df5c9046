"""Who brings the servers of a run up and down, so that an arm can serve when its turn comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from quantgate.arm_life.arm_server import ArmServer


class ArmHost(Protocol):
    """Servers by arm id; the baseline and its A/A arm share one.

    exclusive: only one arm may be up, so that whole passes take turns and no two arms can be asked side by side.
    """

    @property
    def exclusive(self) -> bool: ...

    @property
    def servers(self) -> Mapping[str, ArmServer]: ...

    async def bring_up(self, arm_id: str) -> None:
        """Returns when the arm serves; does nothing where it does already.

        Raises ConfigurationError, RunError or EndpointError, one sentence each.
        """
        ...

    async def close(self) -> None:
        """Takes down all that was launched, also after a failure; may be called twice, and from another event loop."""
        ...
