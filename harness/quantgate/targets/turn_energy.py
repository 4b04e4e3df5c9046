"""What an arm's tokens cost in energy: its device's counter before and after each of its turns."""

from __future__ import annotations

from collections.abc import Callable


class TurnEnergy:
    """joules: the device's counter; None where it has none. What the device takes at rest in a turn counts too."""

    def __init__(self, joules: Callable[[], float | None]) -> None:
        self._joules = joules
        self._begun: float | None = None
        self._tokens_in_turn = 0
        self._taken = 0.0
        self._tokens = 0
        self._is_known = True

    def begin_turn(self) -> None:
        self._begun, self._tokens_in_turn = self._joules(), 0

    def count(self, tokens: int) -> None:
        """Output tokens that were received; those from outside of a turn count for nothing."""
        self._tokens_in_turn += tokens

    def end_turn(self) -> None:
        ended = self._joules()
        if self._begun is None or ended is None:
            self._is_known = False
        else:
            self._taken += ended - self._begun
            self._tokens += self._tokens_in_turn

    @property
    def joules_per_token(self) -> float | None:
        """Of all turns that are over; None where one of them is not known, or no token came."""
        return self._taken / self._tokens if self._is_known and self._tokens else None
