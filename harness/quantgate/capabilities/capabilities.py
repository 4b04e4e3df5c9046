"""What one server gives beyond plain answers, and what that makes of each quality tier."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from quantgate.capabilities.tier_support import EXACT, TierSupport, not_measurable, partial

ScoringMethod = Literal["continuation_logits", "prompt_logprobs", "echo", "stepwise"]
"""How the log-probs of given tokens are had: whole logits from our own server; `prompt_logprobs` (vLLM); `echo` with
`logprobs` (OpenAI's older servers, SGLang); or one token after the other with `logprobs` (llama.cpp)."""

TokenizerMatch = Literal["agrees", "differs", "not_compared", "not_given"]
"""Whether the run's tokenizer reads a text as the server does; `not_given`: the run has none."""

_METHOD_WORDS: dict[ScoringMethod, str] = {
    "continuation_logits": "whole logits",
    "prompt_logprobs": "the prompt's log-probs",
    "echo": "the echoed prompt's log-probs",
    "stepwise": "log-probs of one next token at a time",
}


class Capabilities(BaseModel):
    """What a probe found. A number of alternatives counts the tokens that the server lists at each position.

    None in a number: the server does not give it. None in a yes-or-no field: the probe could not tell.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    model: str = Field(description="id of the model that is asked")
    models: list[str] = Field(description="ids that the server offers")
    weights_sha256: str | None = Field(default=None, description="hash of the weights, where the server tells it")
    tokenizer_sha256: str | None = Field(default=None, description="hash of the tokenizer, where the server tells it")
    max_context_tokens: int | None = Field(
        default=None, description="longest prompt plus answer, as the server tells it"
    )
    slots: int | None = Field(default=None, description="requests that the server computes side by side, as it tells")
    completions: bool = Field(default=False, description="/v1/completions answers")
    chat: bool = Field(
        default=False, description="/v1/chat/completions answers, so that the server has a chat template"
    )
    token_id_prompts: bool = Field(default=False, description="completions take a prompt as token ids")
    prompt_logprobs: int | None = Field(
        default=None, description="most alternatives that the field prompt_logprobs lists for each prompt token"
    )
    echoed_logprobs: int | None = Field(
        default=None, description="most alternatives that echo with logprobs lists for each prompt token"
    )
    generated_logprobs: int | None = Field(
        default=None, description="most alternatives that logprobs lists for each generated token"
    )
    vocabulary_listed: bool = Field(default=False, description="logprobs lists every token of the run's vocabulary")
    tokens_identified: bool = Field(default=False, description="listed alternatives can be told apart as tokens")
    forced_tokens: bool = Field(default=False, description="forced_token_ids decodes a given answer")
    continuation_logits: bool = Field(
        default=False, description="whole logits of given answers (quantgate's own server)"
    )
    ignore_eos: bool | None = Field(default=None, description="ignore_eos really lets an answer run past its own end")
    seed: bool | None = Field(default=None, description="equal seeds give equal answers, unlike seeds unlike ones")
    stream_usage: bool = Field(default=False, description="a stream ends with the server's own token counts")
    token_ids_returned: bool = Field(default=False, description="return_token_ids gives the answer's token ids")
    metrics: bool = Field(default=False, description="/metrics gives Prometheus text")
    tokenize: bool = Field(default=False, description="/tokenize answers")
    tokenizer: TokenizerMatch = Field(
        default="not_given", description="whether the run's tokenizer reads as the server does"
    )
    tokenizer_fingerprint: str | None = Field(
        default=None, description="SHA-256 of the token ids that the server makes of a fixed text, where it shows them"
    )
    notes: list[str] = Field(default=[], description="what the probe could not tell, and why")
    requests: int = Field(default=0, description="requests that the probe sent")

    @property
    def scoring(self) -> ScoringMethod | None:
        """The best way to the log-probs of given tokens; None where there is none."""
        if self.continuation_logits:
            return "continuation_logits"
        if not self.token_id_prompts:
            return None
        if self.prompt_logprobs is not None:
            return "prompt_logprobs"
        if self.echoed_logprobs is not None:
            return "echo"
        return "stepwise" if self.generated_logprobs and self.tokens_identified else None

    @property
    def alternatives(self) -> int | None:
        """Most tokens listed at a position by the best way; None: the whole vocabulary."""
        listed: dict[ScoringMethod | None, int | None] = {
            "continuation_logits": None,
            "prompt_logprobs": self.prompt_logprobs,
            "echo": (self.echoed_logprobs or 0) if self.tokens_identified else 0,
            "stepwise": self.generated_logprobs,
            None: 0,
        }
        return listed[self.scoring]

    @property
    def distribution(self) -> TierSupport:
        """Next-token distributions over the baseline's own tokens."""
        unscored = self._unscored
        if unscored is not None:
            return unscored
        if self.alternatives is None:
            return EXACT
        if self.alternatives == 0:
            return not_measurable("the server lists no alternatives that can be told apart as tokens")
        return partial(
            f"the server lists the {self.alternatives} likeliest tokens at most ({self._method_words}): KL is a lower "
            "bound over them, called kl_topk"
        )

    @property
    def likelihood(self) -> TierSupport:
        """Log-probability of given answers: the likelihood twins."""
        unscored = self._unscored
        if unscored is not None:
            return unscored
        if self.scoring == "stepwise" and not self.vocabulary_listed:
            return partial(
                f"an option with a token outside the {self.alternatives} likeliest ({self._method_words}) has no "
                "log-prob, and its item is left out on every arm"
            )
        return EXACT

    @property
    def answers(self) -> TierSupport:
        """Generated answers to task items, and the habits seen in them."""
        if self.token_id_prompts and self.tokenizer in ("agrees", "not_compared"):
            return EXACT
        if self.chat:
            return partial("prompts go as messages under the server's own chat template")
        return not_measurable("the server takes neither token ids nor chat messages")

    @property
    def _unscored(self) -> TierSupport | None:
        if self.tokenizer == "not_given":
            return not_measurable("no tokenizer given")
        if self.tokenizer == "differs":
            return not_measurable("the tokenizer given does not read as the server's does")
        if self.scoring is None:
            return not_measurable("the server gives no log-probs of given tokens")
        return None

    @property
    def _method_words(self) -> str:
        return _METHOD_WORDS[self.scoring] if self.scoring else ""
