"""How a request's tokens are chosen and when it ends."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.errors import ConfigurationError

MAX_LOGPROBS = 20
"""Most alternatives that a request may ask for, as in OpenAI's interface."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling settings of one request.

    temperature 0 is greedy. Random draws depend on (seed, position) alone, never on batch mates.
    min_p keeps tokens whose probability is at least that share of the likeliest one's (0: off).
    `stop` ends the request where one of the strings comes up in its text; the text is cut before it. Strings need text,
    so the fronts that make text look for them (`LLM.generate`, the server), not the engine's core.
    `forced_token_ids` is a continuation to decode as given, of exactly `max_tokens` tokens: nothing is chosen, no token
    stops it, and log-probabilities are those that the model gives these tokens.
    `logprobs` asks for the log-probability of each chosen token and of that many most likely alternatives
    (0: the chosen token's only; None: none).
    """

    max_tokens: int = 128
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logprobs: int | None = None
    forced_token_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        forced = len(self.forced_token_ids)
        checks = {
            "max_tokens": (self.max_tokens >= 1, "at least 1"),
            "temperature": (self.temperature >= 0.0, "0 or more"),
            "top_k": (self.top_k >= 0, "0 (off) or more"),
            "top_p": (0.0 < self.top_p <= 1.0, "above 0 and at most 1"),
            "min_p": (0.0 <= self.min_p <= 1.0, "0 (off) to 1"),
            "stop": (
                all(self.stop) and not (self.stop and forced),
                "no empty string, and none beside forced_token_ids",
            ),
            "logprobs": (self.logprobs is None or 0 <= self.logprobs <= MAX_LOGPROBS, f"None or 0 to {MAX_LOGPROBS}"),
            "forced_token_ids": (forced in (0, self.max_tokens), f"none, or max_tokens ({self.max_tokens}) of them"),
        }
        for field, (valid, expected) in checks.items():
            if not valid:
                raise ConfigurationError(f"SamplingParams.{field} is {getattr(self, field)!r}; expected {expected}.")
