"""What a request is taken to need of the KV cache before it is let in."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from quantgate_engine.request import Request
from quantgate_engine.scheduler.admission.crowd import Crowd, ExpectingCrowd
from quantgate_engine.scheduler.admission.settings import AdmissionSettings, EstimatorName


class Estimator(Protocol):
    """`promise` is what the pool puts by for a request; a `crowd` tells what several may come to hold at once."""

    def promise(self, request: Request) -> int:
        """KV tokens that the request is sure to get if it is let in."""
        ...

    def crowd(self, running: Sequence[Request], /) -> Crowd:
        """Those that run, to ask who may join them."""
        ...

    def learn(self, answer_tokens: int, /) -> None:
        """An answer came to its end after so many tokens."""
        ...

    def forget(self) -> None:
        """What was learned counts no more."""
        ...


class Guaranteed:
    """The whole sequence: what is running can always go on to its last token, and nothing is ever preempted.

    The price is memory that is promised and, where a request stops early, never used.
    """

    def promise(self, request: Request) -> int:
        return request.max_stored_tokens

    def crowd(self, running: Sequence[Request]) -> Crowd:
        return Crowd(running)

    def learn(self, _answer_tokens: int) -> None:
        return

    def forget(self) -> None:
        return


class Optimistic:
    """What is known already: the whole prompt, never only its first chunk, and what was drawn before a preemption.

    A prompt that is let in by its first chunk alone holds blocks that it cannot finish with (vllm#37307).
    """

    def promise(self, request: Request) -> int:
        return request.num_tokens

    def crowd(self, running: Sequence[Request]) -> Crowd:
        return Crowd(running)

    def learn(self, _answer_tokens: int) -> None:
        return

    def forget(self) -> None:
        return


class PastFuture(Optimistic):
    """The peak that the lengths of past answers let expect (Past-Future scheduler, ASPLOS 2025); see ExpectingCrowd.

    What is left of an answer is a quantile of the past answers that were longer than it is now, and at most its
    `max_tokens`; without such answers it is taken to go that far.
    """

    def __init__(self, settings: AdmissionSettings) -> None:
        self._quantile = settings.past_quantile
        self._recent: deque[int] = deque(maxlen=settings.past_answers)
        self._sorted: list[int] = []

    def learn(self, answer_tokens: int) -> None:
        if len(self._recent) == self._recent.maxlen:
            oldest = self._recent[0]
            del self._sorted[bisect_right(self._sorted, oldest) - 1]
        self._recent.append(answer_tokens)
        insort(self._sorted, answer_tokens)

    def forget(self) -> None:
        self._recent.clear()
        self._sorted.clear()

    def crowd(self, running: Sequence[Request]) -> Crowd:
        return ExpectingCrowd(running, self._left)

    def _left(self, request: Request) -> int:
        drawn = len(request.output)
        longer = bisect_right(self._sorted, drawn)
        most = request.params.max_tokens
        if longer < len(self._sorted):
            index = longer + int(self._quantile * (len(self._sorted) - 1 - longer))
            most = min(most, self._sorted[index])
        return most - drawn


ESTIMATORS: Mapping[EstimatorName, Callable[[AdmissionSettings], Estimator]] = MappingProxyType(
    {
        "guaranteed": lambda _settings: Guaranteed(),
        "past-future": PastFuture,
        "optimistic": lambda _settings: Optimistic(),
    }
)
