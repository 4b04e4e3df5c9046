"""The hard caps, which may change while the engine runs."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.setting_checks import require_at_least


@dataclass(frozen=True, slots=True)
class Caps:
    """max_context_tokens: prompt plus output of one request. max_active_requests: requests that hold KV at once.
    max_kv_tokens: KV tokens that all of them may hold or be promised; None: as many as the pool has.
    """

    max_context_tokens: int
    max_active_requests: int
    max_kv_tokens: int | None = None

    def __post_init__(self) -> None:
        require_at_least("Caps.max_context_tokens", self.max_context_tokens, 1)
        require_at_least("Caps.max_active_requests", self.max_active_requests, 1)
        require_at_least("Caps.max_kv_tokens", self.max_kv_tokens, 1, optional=True)
