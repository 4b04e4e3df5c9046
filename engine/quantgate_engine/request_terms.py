"""What a request asks of the scheduler, beside how its tokens are chosen."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.setting_checks import require


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
        require(
            self.timeout_s is None or self.timeout_s > 0, "RequestTerms.timeout_s", self.timeout_s, "above 0, or None"
        )
        rising = all(0 <= a < b for a, b in zip(self.turn_starts, self.turn_starts[1:], strict=False))
        require(
            rising and min(self.turn_starts, default=0) >= 0,
            "RequestTerms.turn_starts",
            self.turn_starts,
            "rising positions from 0 on",
        )


DEFAULT_TERMS = RequestTerms()
