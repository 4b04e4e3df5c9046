"""A budget that cannot be overdrawn: what a call may cost at most is set aside before the call is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spending:
    """requests: calls made, failed ones included. Tokens are those that count against the budget."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def exceeds(self, limit: CallLimit) -> bool:
        """Whether a call used more than it was allowed to."""
        return self.prompt_tokens > limit.prompt_tokens or self.completion_tokens > limit.completion_tokens

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class CallLimit:
    """The most that one call can use: tokens of its prompt, and its `max_tokens` in full."""

    prompt_tokens: int
    completion_tokens: int

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def as_spent(self) -> Spending:
        """What is charged where nobody can tell what the call used."""
        return Spending(1, self.prompt_tokens, self.completion_tokens)


class Budget:
    """Calls and tokens that may still be spent. Not for several threads; one event loop is fine.

    A server that bills more than it was allowed to (its usage exceeds the limit that the call was made with) can
    overdraw the budget by that excess. Nothing is reserved after that, and `covers_reserved` says that what is reserved
    already must not be begun.
    """

    def __init__(self, requests: int, tokens: int, spent: Spending) -> None:
        """`spent`: what earlier calls used of it."""
        self._requests = requests
        self._tokens = tokens
        self._reserved_requests = 0
        self._reserved_tokens = 0
        self.spent = spent

    def reserve(self, limits: Sequence[CallLimit]) -> list[Reservation] | None:
        """Sets aside what all these calls may use, or nothing at all: None where it does not fit."""
        requests = self.spent.requests + self._reserved_requests + len(limits)
        tokens = self.spent.tokens + self._reserved_tokens + sum(limit.tokens for limit in limits)
        if requests > self._requests or tokens > self._tokens:
            return None
        self._reserved_requests += len(limits)
        self._reserved_tokens += sum(limit.tokens for limit in limits)
        return [Reservation(self, limit) for limit in limits]

    @property
    def covers_reserved(self) -> bool:
        """Whether what is spent leaves room for all that is set aside."""
        requests = self.spent.requests + self._reserved_requests
        return requests <= self._requests and self.spent.tokens + self._reserved_tokens <= self._tokens

    @property
    def overrun_tokens(self) -> int:
        """Tokens that were charged beyond the budget."""
        return max(0, self.spent.tokens - self._tokens)

    def _give_back(self, limit: CallLimit) -> None:
        self._reserved_requests -= 1
        self._reserved_tokens -= limit.tokens


class Reservation:
    """What was set aside for one call. Ends exactly once: settled with what was used, or released unused."""

    def __init__(self, budget: Budget, limit: CallLimit) -> None:
        self._budget = budget
        self._open = True
        self.limit = limit

    def settle(self, used: Spending) -> None:
        """Raises ValueError where it has ended already."""
        self._end()
        self._budget.spent += used

    def release(self) -> None:
        """For a call that was not made; nothing happens where the reservation has ended."""
        if self._open:
            self._end()

    def _end(self) -> None:
        if not self._open:
            raise ValueError("this reservation has ended already")
        self._open = False
        self._budget._give_back(self.limit)
