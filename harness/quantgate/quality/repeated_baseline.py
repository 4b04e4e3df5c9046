"""The A/A arm of the quality tiers: the baseline again, batched in another way."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.quality.quality_model import (
    ArmSupport,
    ChatPrompt,
    Continuations,
    GeneratedAnswer,
    ItemFailure,
    QualityModel,
    Tokenizer,
)
from quantgate.quality.scores import Scores


class RepeatedBaseline:
    """The same weights under another prefill chunk and other batch mates.

    What differs between this arm and the baseline is the noise of batching alone; no candidate can be held to less.
    """

    def __init__(self, baseline: QualityModel, chunk_tokens: int = 64) -> None:
        if chunk_tokens < 1:
            raise ValueError(f"chunk_tokens is {chunk_tokens}; expected at least 1.")
        self._baseline = baseline
        self._chunk_tokens = chunk_tokens

    @property
    def tokenizer(self) -> Tokenizer | None:
        return self._baseline.tokenizer

    @property
    def support(self) -> ArmSupport:
        return self._baseline.support

    @property
    def concurrency(self) -> int:
        return self._baseline.concurrency

    def score(
        self, questions: Sequence[Continuations], chunk_tokens: int | None = None
    ) -> list[list[Scores] | ItemFailure]:
        """The questions in reverse order; results in the order asked."""
        return self._baseline.score(list(reversed(questions)), chunk_tokens or self._chunk_tokens)[::-1]

    def generate(self, prompts: Sequence[ChatPrompt], max_tokens: int) -> list[GeneratedAnswer | ItemFailure]:
        """The prompts in reverse order, so that each meets other batch mates; results in the order asked."""
        return self._baseline.generate(list(reversed(prompts)), max_tokens)[::-1]
