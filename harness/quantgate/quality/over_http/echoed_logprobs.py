"""Log-probs of given tokens by `echo` with `logprobs`: the server repeats the prompt, continuation included."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from quantgate.capabilities.logprob_shapes import read_logprobs
from quantgate.quality.over_http.asked_server import AskedServer
from quantgate.quality.quality_model import Continuations
from quantgate.quality.scores import Scores, listed_scores


async def echoed_logprobs(server: AskedServer, question: Continuations, chunk_tokens: int | None) -> list[Scores]:
    """`chunk_tokens` is for servers that take it; echo has no such setting."""
    del chunk_tokens

    async def scored(option: Sequence[int]) -> Scores:
        token_ids = [*question.prompt_ids, *option]
        answer = await server.complete(
            token_ids, max_tokens=1, temperature=0, echo=True, logprobs=max(1, server.alternatives)
        )
        positions = read_logprobs(answer, server.texts)[len(question.prompt_ids) : len(token_ids)]
        if len(positions) != len(option):
            raise ValueError("the echo lists fewer positions than the prompt has tokens")
        return listed_scores(
            [position.own for position in positions],
            [position.alternatives for position in positions],
            server.alternatives,
        )

    return await asyncio.gather(*map(scored, question.options))
