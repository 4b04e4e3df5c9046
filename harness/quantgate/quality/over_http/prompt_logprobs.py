"""Log-probs of given tokens by vLLM's field `prompt_logprobs`: the continuation is sent as a part of the prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from quantgate.capabilities.logprob_shapes import read_prompt_logprobs
from quantgate.quality.over_http.asked_server import AskedServer
from quantgate.quality.quality_model import Continuations
from quantgate.quality.scores import Scores, listed_scores


async def prompt_logprobs(server: AskedServer, question: Continuations, chunk_tokens: int | None) -> list[Scores]:
    """`chunk_tokens` is for servers that take it; this field has no such setting."""
    del chunk_tokens

    async def scored(option: Sequence[int]) -> Scores:
        token_ids = [*question.prompt_ids, *option]
        answer = await server.complete(token_ids, max_tokens=1, temperature=0, prompt_logprobs=server.alternatives)
        positions = read_prompt_logprobs(answer, token_ids)[len(question.prompt_ids) :]
        return listed_scores(
            [position.own for position in positions],
            [position.alternatives for position in positions],
            server.alternatives,
        )

    return await asyncio.gather(*map(scored, question.options))
