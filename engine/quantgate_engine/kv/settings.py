"""Settings of the KV cache beside its size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quantgate_engine.setting_checks import require, require_at_least, require_seconds, require_type

KVDtypeName = Literal["auto", "int8"]
"""`auto`: the dtype of the activations; `int8`: codes, with a float32 scale for each token and KV head."""


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """What the KV cache keeps of requests that have ended.

    prefix_sharing: requests with equal first tokens share the blocks of these. Off by default, because a hit changes
    which rows are computed together, and with them the last bits of the logits: arms are compared without it.
    session_seconds: how long the blocks of a session's last turn are held for its next one; 0: not at all.
    session_blocks: blocks that all sessions together may hold; the session that waits longest lets go first.
    """

    prefix_sharing: bool = False
    session_seconds: float = 0.0
    session_blocks: int = 1024

    def __post_init__(self) -> None:
        require_type("CacheSettings.prefix_sharing", self.prefix_sharing, bool)
        require_seconds("CacheSettings.session_seconds", self.session_seconds, may_be_zero=True)
        require_at_least("CacheSettings.session_blocks", self.session_blocks, 1)
        require(
            self.prefix_sharing or not self.session_seconds,
            "CacheSettings.session_seconds",
            self.session_seconds,
            "0 unless prefix_sharing is on: a session's next turn finds its blocks by their prefix",
        )
