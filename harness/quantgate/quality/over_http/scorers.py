"""The ways to the log-probs of given tokens, by the name under which a probe found them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quantgate.capabilities.capabilities import ScoringMethod
from quantgate.quality.over_http.asked_server import AskedServer
from quantgate.quality.over_http.continuation_logits import continuation_logits
from quantgate.quality.over_http.echoed_logprobs import echoed_logprobs
from quantgate.quality.over_http.prompt_logprobs import prompt_logprobs
from quantgate.quality.over_http.stepwise_logprobs import stepwise_logprobs
from quantgate.quality.quality_model import Continuations
from quantgate.quality.scores import Scores

Scorer = Callable[[AskedServer, Continuations, int | None], Awaitable[list[Scores]]]
"""Scores each continuation of one prompt; the third argument is the prefill chunk.

Raises EndpointError where the server refuses or fails, ValueError where its answer is not what was asked for.
"""

SCORERS: dict[ScoringMethod, Scorer] = {
    "continuation_logits": continuation_logits,
    "prompt_logprobs": prompt_logprobs,
    "echo": echoed_logprobs,
    "stepwise": stepwise_logprobs,
}
