"""The bundled engine as a `QualityModel`."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.quality.prompting import prompt_token_ids
from quantgate.quality.quality_model import (
    ArmSupport,
    ChatPrompt,
    Continuations,
    GeneratedAnswer,
    ItemFailure,
    Tokenizer,
)
from quantgate.quality.scores import Scores, WholeScores
from quantgate_engine import LLM, SamplingParams
from quantgate_engine.outputs import RequestOutput


class BundledEngineModel:
    """Wraps a loaded `quantgate_engine.LLM`; the engine stays the caller's to keep and to release."""

    support = ArmSupport()
    concurrency = 1

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def tokenizer(self) -> Tokenizer:
        tokenizer: Tokenizer = self._llm.tokenizer
        return tokenizer

    def score(
        self, questions: Sequence[Continuations], chunk_tokens: int | None = None
    ) -> list[list[Scores] | ItemFailure]:
        return [
            [
                WholeScores(logits)
                for logits in self._llm.continuation_logits(question.prompt_ids, question.options, chunk_tokens)
            ]
            for question in questions
        ]

    def generate(self, prompts: Sequence[ChatPrompt], max_tokens: int) -> list[GeneratedAnswer | ItemFailure]:
        token_ids = [list(prompt.token_ids) or prompt_token_ids(self.tokenizer, prompt.messages) for prompt in prompts]
        return [self._answer(output) for output in self._llm.generate(token_ids, SamplingParams(max_tokens=max_tokens))]

    def _answer(self, output: RequestOutput) -> GeneratedAnswer:
        stopped = output.finish_reason == "stop"
        kept = list(output.token_ids[:-1] if stopped else output.token_ids)
        return GeneratedAnswer(self.tokenizer.decode(kept, skip_special_tokens=True), len(kept), truncated=not stopped)
