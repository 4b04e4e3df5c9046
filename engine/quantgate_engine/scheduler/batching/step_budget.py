"""How many tokens a step may hold, and what becomes of that when the executor runs out of memory."""

from __future__ import annotations

RECOVERY_STEPS = 16
"""Steps that it takes to come back from nothing: few enough that no request waits long for its turn, and enough that
an executor which is short of memory for good fails in few of its steps."""


class StepBudget:
    """The most tokens of a step: halved where a step was too large for the memory, then slowly raised again.

    The cache itself is allocated before the first request and never grows; what can still run out is the memory for a
    step's activations, which grows with its tokens.
    """

    def __init__(self, max_tokens: int) -> None:
        self.tokens = max_tokens
        self._max_tokens = max_tokens
        self._raise = -(-max_tokens // RECOVERY_STEPS)

    def shrink(self, failed_tokens: int) -> bool:
        """A step of so many tokens found no memory; false where the next one cannot be any smaller.

        That is so for a single token, and for a prompt above the budget, which went in one piece because it may not be
        cut.
        """
        if failed_tokens <= 1 or failed_tokens > self.tokens:
            return False
        self.tokens = failed_tokens // 2
        return True

    def recover(self) -> None:
        """A step went through."""
        self.tokens = min(self._max_tokens, self.tokens + self._raise)
