"""What the model thinks of a prompt: for echo, and for prompt_logprobs."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quantgate_engine.executor.base import SampledToken, TokenScore
from quantgate_engine.server.service import Service
from quantgate_engine.text.token_pieces import TokenPieces

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True, slots=True)
class ScoredPrompt:
    """A prompt's tokens and, where asked for, the scores of all but the first, which nothing comes before."""

    token_ids: tuple[int, ...]
    scores: tuple[TokenScore, ...]

    def text(self, tokenizer: PreTrainedTokenizerFast) -> str:
        """The prompt as its tokens read, special ones included."""
        return str(tokenizer.decode(list(self.token_ids), skip_special_tokens=False))

    def as_sampled(self, alternatives: int) -> tuple[SampledToken, ...]:
        """The prompt's tokens as if they had been drawn, with so many alternatives."""
        scored = (SampledToken(each.token_id, each.logprob, each.top_logprobs[:alternatives]) for each in self.scores)
        return (SampledToken(self.token_ids[0]), *scored)

    def offsets(self, pieces: TokenPieces) -> tuple[int, ...]:
        """Where each token's text begins, in characters."""
        # A character that is spread over tokens counts with its last.
        decoder = getincrementaldecoder("utf-8")("replace")
        offsets, position = [], 0
        for token_id in self.token_ids:
            offsets.append(position)
            position += len(decoder.decode(pieces.bytes_of(token_id)))
        return tuple(offsets)


async def score_prompts(
    service: Service, prompts: Sequence[tuple[int, ...]], alternatives: int | None
) -> list[ScoredPrompt]:
    """alternatives: likeliest tokens beside each of the prompts' own; None scores nothing.

    Raises ApiError 400 for a prompt that is empty, too long, or not of this model's tokens.
    """
    if alternatives is None:
        return [ScoredPrompt(prompt, ()) for prompt in prompts]
    return [
        ScoredPrompt(prompt, tuple(await service.token_scores(prompt, alternatives, "prompt"))) for prompt in prompts
    ]
