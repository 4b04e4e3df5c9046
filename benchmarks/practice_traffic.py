"""Bursty traffic for the measurements of practices: the same requests at the same times for the same seed."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass

from quantgate.workload.plan import PlannedRequest, ReplayPlan

LONGEST_CHAT_PROMPT = 128
DOCUMENT_PROMPTS = (192, 384)
_SHORTEST_ANSWER = 4
LONG_OUTPUT_TOKENS = 8

CONTEXT_TOKENS = 512
"""At least the longest prompt and answer, but for long prompts; a multiple of every block size that is compared."""


# Ordinary tokens of the bundled model: special ones lie below, and its vocabulary ends above.
_TOKENS = (1_000, 49_000)


@dataclass(frozen=True, slots=True)
class Traffic:
    """How a replay is drawn.

    requests: in all but for the long prompts. requests_per_s: their mean rate. burst_requests: mean size of a burst;
    sizes are geometric, bursts start at random (Poisson), and in one the requests come 10 ms apart (exponential).
    document_share: prompts of 192 to 384 tokens, class batch; the others are chat of 8 to 128 tokens (lognormal, median
    32), four fifths of it interactive. answer_tokens: mean length of an answer (4 tokens and an exponential remainder),
    longest_answer: where it is cut.
    long_prompts: prompts of long_prompt_tokens tokens, class batch, each in the middle of a burst: it comes with one of
    the other requests, which are the same without.
    """

    requests: int = 400
    requests_per_s: float = 10.0
    burst_requests: int = 12
    document_share: float = 0.06
    answer_tokens: int = 13
    longest_answer: int = 48
    long_prompts: int = 0
    long_prompt_tokens: int = 4_000
    seed: int = 20_261_129


def draw_plan(traffic: Traffic) -> ReplayPlan:
    """The plan; each request is tagged with its kind: chat, document or long."""
    draws = random.Random(f"{traffic.seed}:requests")
    times = _burst_times(traffic, draws)
    requests = [_short_request(number, time, traffic, draws) for number, time in enumerate(times)]
    for number in range(traffic.long_prompts):
        beside = times[(number + 1) * len(times) // (traffic.long_prompts + 1)]
        requests.append(_long_request(number, beside, traffic))
    requests.sort(key=lambda request: request.scheduled_ns)
    return ReplayPlan(tuple(requests), source="drawn", source_sha256="", seed=traffic.seed)


def describe(traffic: Traffic) -> dict[str, object]:
    """The settings, and what they come to."""
    plan = draw_plan(traffic)
    return asdict(traffic) | {
        "plan_sha256": plan.sha256(),
        "prompt_tokens": plan.prompt_tokens,
        "output_tokens": plan.output_tokens,
        "span_s": round(plan.span_ns / 1e9, 2),
    }


def largest_burst(plan: ReplayPlan, within_s: float = 1.0) -> tuple[PlannedRequest, ...]:
    """The most requests that arrive within so many seconds of one of them."""
    window_ns = round(within_s * 1e9)
    requests = plan.requests
    bursts = (
        tuple(later for later in requests[first:] if later.scheduled_ns < request.scheduled_ns + window_ns)
        for first, request in enumerate(requests)
    )
    return max(bursts, key=len)


def _burst_times(traffic: Traffic, draws: random.Random) -> list[float]:
    """Seconds from the first arrival, in order; stretched so that the mean rate is the wanted one."""
    starts: list[float] = []
    start = 0.0
    while len(starts) < traffic.requests:
        size = 1 + int(draws.expovariate(1 / traffic.burst_requests))
        starts += [start] * min(size, traffic.requests - len(starts))
        start += draws.expovariate(traffic.requests_per_s / traffic.burst_requests)
    stretch = traffic.requests / traffic.requests_per_s / (start or 1.0)
    times: list[float] = []
    for number, begins in enumerate(starts):
        begins_burst = number == 0 or begins != starts[number - 1]
        times.append(begins * stretch if begins_burst else times[-1] + draws.expovariate(100.0))
    return sorted(times)


def _short_request(number: int, time: float, traffic: Traffic, draws: random.Random) -> PlannedRequest:
    is_document = draws.random() < traffic.document_share
    chat_tokens = min(LONGEST_CHAT_PROMPT, max(8, round(draws.lognormvariate(3.47, 0.6))))
    document_tokens = draws.randint(*DOCUMENT_PROMPTS)
    is_interactive = draws.random() < 0.8 and not is_document
    remainder = draws.expovariate(1 / (traffic.answer_tokens - _SHORTEST_ANSWER))
    return PlannedRequest(
        request_id=f"request-{number}",
        scheduled_ns=round(time * 1e9),
        prompt_token_ids=_tokens(f"{traffic.seed}:{number}", document_tokens if is_document else chat_tokens),
        output_tokens=min(traffic.longest_answer, _SHORTEST_ANSWER + int(remainder)),
        slo_class="interactive" if is_interactive else "batch",
        tags=("document" if is_document else "chat",),
    )


def _long_request(number: int, time: float, traffic: Traffic) -> PlannedRequest:
    return PlannedRequest(
        request_id=f"long-{number}",
        scheduled_ns=round(time * 1e9),
        prompt_token_ids=_tokens(f"{traffic.seed}:long:{number}", traffic.long_prompt_tokens),
        output_tokens=LONG_OUTPUT_TOKENS,
        slo_class="batch",
        tags=("long",),
    )


def _tokens(seed: str, count: int) -> tuple[int, ...]:
    draws = random.Random(seed)
    return tuple(draws.randrange(*_TOKENS) for _ in range(count))
