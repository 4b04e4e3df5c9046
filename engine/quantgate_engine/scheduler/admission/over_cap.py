"""What becomes of a request that is above a cap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from quantgate_engine.counted import counted, plural
from quantgate_engine.request import Request
from quantgate_engine.scheduler.admission.settings import AdmissionSettings, OverCapName


class OverCapPolicy(Protocol):
    """`may_wait`: whether a request that finds no room now may wait for it."""

    may_wait: bool

    def fit_context(self, request: Request, max_tokens: int, /) -> None:
        """Changes a request whose prompt and output are above `max_tokens` together, if the policy does that."""
        ...

    def shorten(self, request: Request, max_output_tokens: int, /) -> bool:
        """Lowers the request's `max_tokens` so that it finds room now; false where that is not allowed."""
        ...


class Queue:
    """Changes nothing: who finds no room waits for it."""

    may_wait = True

    def fit_context(self, _request: Request, _max_tokens: int) -> None:
        return

    def shorten(self, _request: Request, _max_output_tokens: int) -> bool:
        return False


class Reject(Queue):
    """Who finds no room when it arrives is sent away."""

    may_wait = False


class Degrade(Queue):
    """Cuts what it can: the output down to a minimum, then the oldest turns of the context, in whole turns.

    A forced continuation is never cut: it is there to be compared token by token.
    """

    def __init__(self, settings: AdmissionSettings) -> None:
        self._least = settings.min_output_tokens

    def fit_context(self, request: Request, max_tokens: int) -> None:
        least = self._least_output(request)
        if len(request.prompt_token_ids) + least > max_tokens:
            self._drop_turns(request, max_tokens - least)
        room = max_tokens - len(request.prompt_token_ids)
        if least <= room < request.params.max_tokens:
            self._cut_output(request, room)

    def shorten(self, request: Request, max_output_tokens: int) -> bool:
        if max_output_tokens < self._least_output(request):
            return False
        if max_output_tokens < request.params.max_tokens:
            self._cut_output(request, max_output_tokens)
        return True

    def _least_output(self, request: Request) -> int:
        """Whatever was drawn before a preemption is kept, and one more."""
        if request.params.forced_token_ids:
            return request.params.max_tokens
        return min(request.params.max_tokens, max(self._least, len(request.output) + 1))

    def _cut_output(self, request: Request, max_tokens: int) -> None:
        _note(request, f"max_tokens was cut from {request.params.max_tokens} to {max_tokens}")
        request.params = replace(request.params, max_tokens=max_tokens)

    def _drop_turns(self, request: Request, max_prompt_tokens: int) -> None:
        """Leaves the prompt as it is where even its last turn is too long: it is then rejected with the numbers."""
        prompt, starts = request.prompt_token_ids, request.terms.turn_starts
        for start in starts[1:]:
            kept = prompt[: starts[0]] + prompt[start:]
            if start < len(prompt) and len(kept) <= max_prompt_tokens:
                left = start - starts[0]
                _note(request, f"the oldest {counted(left, 'prompt token')} {plural(left, 'was', 'were')} left out")
                request.prompt_token_ids = kept
                request.prefix_chain = None
                return


def _note(request: Request, what: str) -> None:
    request.degraded = what if request.degraded is None else f"{request.degraded}; {what}"


OVER_CAP_POLICIES: Mapping[OverCapName, Callable[[AdmissionSettings], OverCapPolicy]] = MappingProxyType(
    {
        "reject": lambda _settings: Reject(),
        "queue": lambda _settings: Queue(),
        "degrade": Degrade,
    }
)
