"""How a request's tokens are chosen and when it ends."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling settings of one request.

    temperature 0 is greedy. Random draws depend on (seed, position) alone, never on batch mates.
    `logprobs` asks for the log-probability of each chosen token and of that many most likely alternatives
    (0: the chosen token's only; None: none).
    """

    max_tokens: int = 128
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logprobs: int | None = None

    def __post_init__(self) -> None:
        checks = {
            "max_tokens": (self.max_tokens >= 1, "at least 1"),
            "temperature": (self.temperature >= 0.0, "0 or more"),
            "top_k": (self.top_k >= 0, "0 (off) or more"),
            "top_p": (0.0 < self.top_p <= 1.0, "above 0 and at most 1"),
            "logprobs": (self.logprobs is None or 0 <= self.logprobs <= 20, "None or 0 to 20"),
        }
        for field, (valid, expected) in checks.items():
            if not valid:
                raise ConfigurationError(f"SamplingParams.{field} is {getattr(self, field)!r}; expected {expected}.")
