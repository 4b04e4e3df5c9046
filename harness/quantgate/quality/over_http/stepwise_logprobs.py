"""Log-probs of given tokens one position at a time, for servers that list those of generated tokens alone.

Position i of a continuation is the next token after the prompt and the continuation's first i tokens, so that a request
for one token lists what is needed. Servers keep what they computed of a prompt: the steps of one question follow each
other, and each costs about one token.
"""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.capabilities.logprob_shapes import ListedPosition, read_logprobs
from quantgate.quality.over_http.asked_server import AskedServer
from quantgate.quality.quality_model import Continuations
from quantgate.quality.scores import Scores, listed_scores

_SEEDS = (0, 1, 2)
_MANY = 1000


async def stepwise_logprobs(server: AskedServer, question: Continuations, chunk_tokens: int | None) -> list[Scores]:
    """`chunk_tokens` is for servers that take it; steps of one token have no such setting."""
    del chunk_tokens
    return [await _scored(server, question.prompt_ids, option) for option in question.options]


async def _scored(server: AskedServer, prompt_ids: Sequence[int], option: Sequence[int]) -> Scores:
    own: list[float | None] = []
    listed = []
    for position, token in enumerate(option):
        before = [*prompt_ids, *option[:position]]
        step = await _step(server, before, server.alternatives)
        known = step.alternatives.get(token)
        for more in _farther(server):
            if known is not None:
                break
            known = (await _step(server, before, more)).alternatives.get(token)
        own.append(known)
        listed.append(step.alternatives)
    return listed_scores(own, listed, server.alternatives)


def _farther(server: AskedServer) -> list[int]:
    """How many alternatives to ask for where the token is not among the first: the whole vocabulary is megabytes."""
    most = server.most_alternatives
    return [more for more in dict.fromkeys((min(_MANY, most), most)) if more > server.alternatives]


async def _step(server: AskedServer, token_ids: Sequence[int], alternatives: int) -> ListedPosition:
    """What the server lists for the next token; nothing where it lists nothing.

    At temperature 1, since some servers list log-probs after dividing by the temperature. Which token is drawn plays no
    part, but llama.cpp lists nothing where it drew a part of a character: then it is asked to draw again.
    """
    for seed in _SEEDS:
        answer = await server.complete(
            token_ids, max_tokens=1, temperature=1.0, top_p=1.0, seed=seed, logprobs=alternatives
        )
        positions = read_logprobs(answer, server.texts)
        if positions:
            return positions[0]
    return ListedPosition(own=None)
