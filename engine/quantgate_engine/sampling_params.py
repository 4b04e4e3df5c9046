"""How a request's tokens are chosen and when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from quantgate_engine.argument_checks import is_finite, is_whole, token_ids_of
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown

MAX_LOGPROBS = 20
"""Most alternatives that a request may ask for, as in OpenAI's interface."""

MAX_PENALTY = 2.0
"""Limit of presence and frequency penalties either way, as in OpenAI's interface."""

MAX_REPETITION_PENALTY = 1e6
"""Limit of a repetition penalty, and the inverse of its lower limit: far beyond where anything changes any more."""

MAX_LOGIT_BIAS = 100.0
"""Limit of a bias either way, as in OpenAI's interface; it as good as forces or forbids a token."""


class LogitsNeed(Enum):
    """What a token is chosen by: the best one alone, the likeliest ones, or all of them, each exact."""

    BEST = "best"
    LIKELIEST = "likeliest"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling settings of one request.

    temperature 0 is greedy. The noise of a draw depends on (seed, position, token) alone, never on batch mates, so that
    settings that hardly differ draw nearly the same tokens.
    min_p keeps tokens whose probability is at least that share of the likeliest one's (0: off).
    repetition_penalty above 1 makes tokens that prompt or output hold less likely; presence_penalty lowers the logits
    of tokens that were drawn, frequency_penalty once for each time; logit_bias maps token ids to what is added to their
    logits. `sampling/adjustments.py` has the formulas; greedy choices are subject to them too.
    `stop` ends the request where one of the strings comes up in its text; the text is cut before it. A lone string is
    one of them, as in OpenAI's interface. Strings need text, so the fronts that have a tokenizer look for them
    (`LLM.generate`, `AsyncLLM.stream` over an LLM, the server), not the engine's core.
    `forced_token_ids` is a continuation to decode as given, of exactly `max_tokens` tokens: nothing is chosen, no token
    stops it, and log-probabilities are those that the model gives these tokens.
    `logprobs` asks for the log-probability of each chosen token and of that many most likely alternatives
    (0: the chosen token's only; None: none). They are the model's own, before anything of the above.

    Raises ConfigurationError for values of another type or out of range.
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
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        self._set("stop", _strings(self.stop))
        for name in ("stop_token_ids", "forced_token_ids"):
            self._set(name, token_ids_of(f"SamplingParams.{name}", getattr(self, name)))
        self._check_types()
        forced = len(self.forced_token_ids)
        least, most = 1 / MAX_REPETITION_PENALTY, MAX_REPETITION_PENALTY
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
            "repetition_penalty": (least <= self.repetition_penalty <= most, f"{least:g} to {most:g} (1: off)"),
            "presence_penalty": _within(self.presence_penalty, MAX_PENALTY),
            "frequency_penalty": _within(self.frequency_penalty, MAX_PENALTY),
            "logit_bias": (
                all(abs(bias) <= MAX_LOGIT_BIAS for bias in self.logit_bias.values()),
                f"a map from token id to a number from {-MAX_LOGIT_BIAS:g} to {MAX_LOGIT_BIAS:g}",
            ),
        }
        for name, (valid, expected) in checks.items():
            self._require(name, valid, expected)

    def _check_types(self) -> None:
        for name in ("max_tokens", "top_k", "seed"):
            self._require(name, is_whole(getattr(self, name)), "a whole number")
        for name in ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty"):
            self._require(name, is_finite(getattr(self, name)), "a finite number")
        self._require("ignore_eos", isinstance(self.ignore_eos, bool), "True or False")
        self._require("logprobs", self.logprobs is None or is_whole(self.logprobs), "a whole number, or None")
        biases = self.logit_bias.items() if isinstance(self.logit_bias, Mapping) else [(None, None)]
        self._require(
            "logit_bias",
            all(is_whole(token_id) and is_finite(bias) for token_id, bias in biases),
            "a map from token ids, which are whole numbers, to finite numbers",
        )

    def _require(self, name: str, valid: bool, expected: str) -> None:
        if not valid:
            raise ConfigurationError(f"SamplingParams.{name} is {shown(getattr(self, name))}; expected {expected}.")

    def _set(self, name: str, value: Any) -> None:
        # The class is frozen for its users; before anybody has it, its fields may still take their one form.
        object.__setattr__(self, name, value)

    @property
    def penalises(self) -> bool:
        """Whether the choice of a token depends on those before it."""
        return self.repetition_penalty != 1.0 or self.presence_penalty != 0.0 or self.frequency_penalty != 0.0

    @property
    def adjusts_logits(self) -> bool:
        return self.penalises or bool(self.logit_bias)

    @property
    def logits_need(self) -> LogitsNeed:
        """Any token may be told about, or become the best of adjusted logits; a draw is among the likeliest."""
        if self.logprobs is not None or self.adjusts_logits:
            return LogitsNeed.ALL
        return LogitsNeed.BEST if self.temperature == 0 else LogitsNeed.LIKELIEST


def _within(value: float, limit: float) -> tuple[bool, str]:
    return abs(value) <= limit, f"{-limit:g} to {limit:g} (0: off)"


def _strings(stop: object) -> tuple[str, ...]:
    if isinstance(stop, str):
        return (stop,)
    strings = tuple(stop) if isinstance(stop, Iterable) else (stop,)
    if not all(isinstance(string, str) for string in strings):
        raise ConfigurationError(f"SamplingParams.stop is {shown(stop)}; expected strings.")
    return strings
