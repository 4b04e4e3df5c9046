"""What a request asks of the scheduler, beside how its tokens are chosen."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.setting_checks import require, require_at_least, require_seconds, require_type


@dataclass(frozen=True, slots=True)
class RequestTerms:
    """Scheduling terms of one request.

    slo_class: the name of one of the engine's SLO classes; None takes the first, the most urgent one.
    timeout_s: seconds after its arrival at which it is given up; None takes the engine's own limit.
    session_id: the conversation it is a turn of; its blocks are kept for the next turn as far as the settings allow.
    fork_of: a live request with the same first tokens, whose blocks it shares (n answers to one prompt): it waits until
    that one has computed them, and computes them itself where that one is gone.
    turn_starts: positions in the prompt at which the turns of a conversation start, oldest first; where a prompt is too
    long, `degrade` leaves out whole turns from the first of these on (what stands before it, a system prompt, stays).
    cache_salt: only requests with the same salt share prefixes.
    """

    slo_class: str | None = None
    timeout_s: float | None = None
    session_id: str | None = None
    fork_of: str | None = None
    turn_starts: tuple[int, ...] = ()
    cache_salt: str = ""

    def __post_init__(self) -> None:
        require_seconds("RequestTerms.timeout_s", self.timeout_s, optional=True)
        for name in ("slo_class", "session_id", "fork_of"):
            require_type(f"RequestTerms.{name}", getattr(self, name), str, optional=True)
        require_type("RequestTerms.cache_salt", self.cache_salt, str)
        require(_has_bytes(self.cache_salt), "RequestTerms.cache_salt", self.cache_salt, "text that UTF-8 can spell")
        require_type("RequestTerms.turn_starts", self.turn_starts, tuple)
        for place, start in enumerate(self.turn_starts):
            require_at_least(f"RequestTerms.turn_starts.{place}", start, 0)
        rising = all(a < b for a, b in zip(self.turn_starts, self.turn_starts[1:], strict=False))
        require(rising, "RequestTerms.turn_starts", self.turn_starts, "rising positions from 0 on")


def _has_bytes(text: str) -> bool:
    """Half a surrogate pair is text in Python, and has no bytes that a prefix could be hashed by."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


DEFAULT_TERMS = RequestTerms()
