"""The A/A arm of the quality tiers: the baseline again, batched in another way."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from quantgate.quality.quality_model import QualityModel, Tokenizer


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
    def tokenizer(self) -> Tokenizer:
        return self._baseline.tokenizer

    def continuation_logits(
        self, prompt_ids: Sequence[int], continuations: Sequence[Sequence[int]], chunk_tokens: int | None = None
    ) -> list[torch.Tensor]:
        return self._baseline.continuation_logits(prompt_ids, continuations, chunk_tokens or self._chunk_tokens)

    def generate(self, prompts: Sequence[Sequence[int]], max_tokens: int) -> list[list[int]]:
        """The prompts in reverse order, so that each meets other batch mates; results in the order asked."""
        return self._baseline.generate(list(reversed(prompts)), max_tokens)[::-1]
