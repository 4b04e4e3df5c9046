"""A server that only notes what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from quantgate.arm_life.arm_server import ArmServer
from quantgate.arm_life.settings import LaunchSettings
from quantgate.targets.openai.settings import EndpointSettings
from quantgate_engine.clock import VirtualClock
from quantgate_engine.errors import RunError


@dataclass
class Machine:
    """What happened, and which servers are up."""

    events: list[str] = field(default_factory=list)
    up: set[str] = field(default_factory=set)


class RecordedServer(ArmServer):
    """Notes what is asked of it; `fails` makes it die while it comes up."""

    def __init__(self, machine: Machine, arm_id: str, *, port: int = 0, launched: bool = True, fails: bool = False):
        launch = LaunchSettings(command=["serve"] if launched else None)
        endpoint = EndpointSettings(url=f"http://localhost:{port or 9000 + ord(arm_id[0])}")
        super().__init__(arm_id, endpoint, launch, clock=VirtualClock())
        self.machine = machine
        self.fails = fails

    @property
    def is_up(self) -> bool:
        return self.arm_id in self.machine.up

    async def bring_up(self) -> None:
        if self.fails:
            raise RunError(f"The server of arm {self.arm_id} ended.")
        if not self.is_up:
            self.machine.events.append(f"+{self.arm_id}")
            self.machine.up.add(self.arm_id)

    async def take_down(self) -> None:
        if self.is_up:
            self.machine.events.append(f"-{self.arm_id}")
            self.machine.up.remove(self.arm_id)
