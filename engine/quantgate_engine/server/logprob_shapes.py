"""Log-probabilities in the three shapes that clients know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quantgate_engine.executor.base import SampledToken, TokenScore
from quantgate_engine.text.token_pieces import TokenPieces


class LogprobShapes:
    """Writes tokens as text, or as `token_id:N`, which no two tokens share.

    The token that was taken always stands among its alternatives, so that there may be one more than were asked for.
    """

    def __init__(self, pieces: TokenPieces, *, as_ids: bool) -> None:
        self._pieces = pieces
        self._as_ids = as_ids

    def completions(self, tokens: Sequence[SampledToken], offsets: Sequence[int]) -> dict[str, Any]:
        """OpenAI's completions shape: four lists, an entry per token; null where nothing comes before the token."""
        return {
            "tokens": [self._name(token.token_id) for token in tokens],
            "token_logprobs": [token.logprob for token in tokens],
            "top_logprobs": [
                None
                if token.logprob is None
                else {self._name(token_id): logprob for token_id, logprob in _with_taken(token)}
                for token in tokens
            ],
            "text_offset": list(offsets),
        }

    def chat(self, tokens: Sequence[SampledToken]) -> dict[str, Any]:
        """OpenAI's chat shape: an object per token, with its bytes and its alternatives."""
        content = [
            self._chat_entry(token.token_id, token.logprob)
            | {"top_logprobs": [self._chat_entry(token_id, logprob) for token_id, logprob in token.top_logprobs]}
            for token in tokens
        ]
        return {"content": content, "refusal": None}

    def prompt(self, scores: Sequence[TokenScore], alternatives: int) -> list[dict[str, Any] | None]:
        """vLLM's `prompt_logprobs`: null for the first token, then an object from token id to log-probability and rank.

        The prompt's own token is always in it.
        """
        return [None, *(self._ranked(score, alternatives) for score in scores)]

    def _ranked(self, score: TokenScore, alternatives: int) -> dict[str, Any]:
        ranked = {
            token_id: (logprob, rank)
            for rank, (token_id, logprob) in enumerate(score.top_logprobs[:alternatives], start=1)
        }
        ranked[score.token_id] = (score.logprob, score.rank)
        return {
            str(token_id): {"logprob": logprob, "rank": rank, "decoded_token": self._pieces.text_of(token_id)}
            for token_id, (logprob, rank) in ranked.items()
        }

    def _chat_entry(self, token_id: int, logprob: float | None) -> dict[str, Any]:
        return {"token": self._name(token_id), "logprob": logprob, "bytes": list(self._pieces.bytes_of(token_id))}

    def _name(self, token_id: int) -> str:
        return f"token_id:{token_id}" if self._as_ids else self._pieces.text_of(token_id)


def _with_taken(token: SampledToken) -> list[tuple[int, float | None]]:
    if any(token_id == token.token_id for token_id, _ in token.top_logprobs):
        return list(token.top_logprobs)
    return [*token.top_logprobs, (token.token_id, token.logprob)]
