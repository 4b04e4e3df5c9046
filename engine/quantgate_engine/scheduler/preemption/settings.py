"""Settings of preemption: who gives way when blocks run out, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from quantgate_engine.setting_checks import require, require_at_least, require_name

PreemptionModeName = Literal["recompute", "swap"]
VictimPolicyName = Literal["last-in", "least-computed", "lowest-class"]


@dataclass(frozen=True, slots=True)
class PreemptionSettings:
    """Who gives way when a running request needs a block and none is left.

    mode: `recompute`: the victim's blocks are dropped and computed again; `swap`: they move to host memory and come
    back, and where the host is full they are dropped.
    victim: `last-in`: who was let in last; `least-computed`: who has the least to lose; `lowest-class`: the least
    urgent class, and of it who was let in last.
    host_blocks: blocks of host memory for `swap`.
    max_preemptions: how often a request may be preempted while there are others; then it is spared.
    """

    mode: PreemptionModeName = "recompute"
    victim: VictimPolicyName = "last-in"
    host_blocks: int = 0
    max_preemptions: int = 4

    def __post_init__(self) -> None:
        require_name("PreemptionSettings.mode", self.mode, get_args(PreemptionModeName))
        require_name("PreemptionSettings.victim", self.victim, get_args(VictimPolicyName))
        require_at_least("PreemptionSettings.host_blocks", self.host_blocks, 0)
        require_at_least("PreemptionSettings.max_preemptions", self.max_preemptions, 1)
        require(
            self.mode != "swap" or self.host_blocks > 0,
            "PreemptionSettings.host_blocks",
            self.host_blocks,
            "at least 1 where the mode is `swap`",
        )
