"""The bundled engine as a `QualityModel`."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from quantgate.quality.quality_model import Tokenizer
from quantgate_engine import LLM, SamplingParams


class BundledEngineModel:
    """Wraps a loaded `quantgate_engine.LLM`; the engine stays the caller's to keep and to release."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def tokenizer(self) -> Tokenizer:
        tokenizer: Tokenizer = self._llm.tokenizer
        return tokenizer

    def continuation_logits(
        self, prompt_ids: Sequence[int], continuations: Sequence[Sequence[int]], chunk_tokens: int | None = None
    ) -> list[torch.Tensor]:
        return self._llm.continuation_logits(prompt_ids, continuations, chunk_tokens)

    def generate(self, prompts: Sequence[Sequence[int]], max_tokens: int) -> list[list[int]]:
        outputs = self._llm.generate([list(prompt) for prompt in prompts], SamplingParams(max_tokens=max_tokens))
        return [list(output.token_ids[: -1 if output.finish_reason == "stop" else None]) for output in outputs]
