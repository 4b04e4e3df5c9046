"""Endless seeded traffic of the shape of Azure's conversation trace, for a soak of the engine.

The trace (Azure LLM inference trace 2023, conversations; Patel et al., "Splitwise", ISCA 2024) has 19,366 requests in
3,502 s. Within a minute it is a Poisson process, over an hour its rate changes by a factor of 2.9. Input tokens have
p50/p95 of 1,020/4,083, output tokens of 129/451: log-widths of ln(p95 / p50) / 1.645 = 0.84 and 0.76.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from quantgate.workload.sample_drawing.arrivals import RATE_BY_STRETCH
from quantgate_engine.request import Request, RequestState
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling_params import SamplingParams

INPUT_MEDIAN, INPUT_SIGMA, INPUT_MOST = 1020, 0.84, 4142
OUTPUT_MEDIAN, OUTPUT_SIGMA, OUTPUT_MOST = 129, 0.76, 32
STRETCH_S = 300.0

LOAD = 0.35
"""Share of the capacity that arrives between bursts, on average over the stretches."""
BURST_LOAD, BURST_SHARE = 3.0, 1 / 6
"""Each cycle begins with a burst of three times the capacity, for that share of it."""

DISCONNECTS, TIMEOUTS, FORKED, SESSIONS, BATCH_CLASS, SYSTEM_PROMPTS = 0.05, 0.02, 0.02, 0.25, 0.26, 0.3
SHORTEST_ANSWER_S = 0.2
"""Sooner than this no answer of `OUTPUT_MOST` tokens can end: who leaves or times out before it does so for sure."""

TOKENS = tuple(range(1_000, 200_000))
SYSTEM_TOKENS = [TOKENS[start : start + 256] for start in range(0, 2_048, 256)]


@cache
def _params(max_tokens: int, seed: int) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, seed=seed)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request on its way. Its client leaves after so many tokens, or at that time, or (None) never."""

    at_ns: int
    request_id: str
    prompt: tuple[int, ...]
    params: SamplingParams
    terms: RequestTerms
    leaves_after_tokens: int | None = None
    leaves_at_ns: int | None = None


class SoakTraffic:
    """Draws requests at rates that follow the trace, with a burst of three times the capacity in every `cycle_s`."""

    def __init__(self, capacity_per_s: float, seed: int, cycle_s: float = 60.0) -> None:
        self._capacity_per_s = capacity_per_s
        self._cycle_s = cycle_s
        self._random = random.Random(seed)
        self._numbers = itertools.count()
        self._sessions: deque[tuple[str, tuple[int, ...]]] = deque(maxlen=1_000)

    def arrivals(self) -> Iterator[Arrival]:
        """In order of time, without an end."""
        for time_s in self._times():
            first = self._draw(round(time_s * 1e9))
            yield first
            if self._random.random() < FORKED:
                yield self._fork(first)
                yield self._fork(first)

    def note_end(self, request: Request) -> None:
        """A session whose turn was answered may go on with another one."""
        session_id = request.terms.session_id
        if session_id is not None and request.state is RequestState.FINISHED:
            history = request.prompt_token_ids + request.output_token_ids
            if len(history) < INPUT_MOST - 256 and self._random.random() < 0.6:
                self._sessions.append((session_id, history))

    def _times(self) -> Iterator[float]:
        """A Poisson process whose rate is constant in pieces: unit exponentials, stretched by the rate of each."""
        now = 0.0
        while True:
            left = self._random.expovariate(1.0)
            while True:
                rate, until = self._rate(now)
                if left <= rate * (until - now):
                    now += left / rate
                    break
                left -= rate * (until - now)
                now = until
            yield now

    def _rate(self, now: float) -> tuple[float, float]:
        """Requests per second, and until when that is so."""
        cycle, stretch = int(now / self._cycle_s), int(now / STRETCH_S)
        burst_ends = (cycle + BURST_SHARE) * self._cycle_s
        if now < burst_ends:
            return BURST_LOAD * self._capacity_per_s, burst_ends
        load = LOAD * RATE_BY_STRETCH[stretch % len(RATE_BY_STRETCH)]
        return load * self._capacity_per_s, (cycle + 1) * self._cycle_s

    def _draw(self, at_ns: int) -> Arrival:
        number, draw = next(self._numbers), self._random.random
        prompt, session_id = self._prompt(number)
        timeout_s = self._random.uniform(0.001, SHORTEST_ANSWER_S) if draw() < TIMEOUTS else None
        slo_class = "batch" if draw() < BATCH_CLASS else "interactive"
        output = self._length(OUTPUT_MEDIAN, OUTPUT_SIGMA, OUTPUT_MOST)
        leaves = draw() < DISCONNECTS
        at_token = self._random.randrange(output) if leaves and draw() < 0.5 else None
        at_time = at_ns + round(self._random.uniform(0, SHORTEST_ANSWER_S) * 1e9) if leaves and not at_token else None
        terms = RequestTerms(slo_class=slo_class, timeout_s=timeout_s, session_id=session_id)
        params = _params(output, number % 4)
        return Arrival(at_ns, f"r{number}", prompt, params, terms, at_token or None, at_time)

    def _fork(self, parent: Arrival) -> Arrival:
        number = next(self._numbers)
        terms = RequestTerms(slo_class=parent.terms.slo_class, fork_of=parent.request_id)
        return Arrival(parent.at_ns, f"r{number}", parent.prompt, _params(parent.params.max_tokens, number % 4), terms)

    def _prompt(self, number: int) -> tuple[tuple[int, ...], str | None]:
        """Tokens, and the session that they are a turn of."""
        length = self._length(INPUT_MEDIAN, INPUT_SIGMA, INPUT_MOST)
        start = self._random.randrange(len(TOKENS) - length)
        tokens = TOKENS[start : start + length]
        if self._random.random() < SESSIONS:
            if self._sessions and self._random.random() < 0.7:
                session_id, history = self._sessions.popleft()
                return history + tokens[: min(256, INPUT_MOST - len(history))], session_id
            return tokens, f"s{number}"
        if self._random.random() < SYSTEM_PROMPTS:
            return (self._random.choice(SYSTEM_TOKENS) + tokens)[:INPUT_MOST], None
        return tokens, None

    def _length(self, median: int, sigma: float, most: int) -> int:
        return max(1, min(most, round(median * self._random.lognormvariate(0.0, sigma))))
