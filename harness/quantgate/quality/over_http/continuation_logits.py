"""Whole logits from quantgate's own server: bit for bit what the engine would have given in this process."""

from __future__ import annotations

import safetensors
from safetensors.torch import load

from quantgate.quality.over_http.asked_server import AskedServer
from quantgate.quality.quality_model import Continuations
from quantgate.quality.scores import Scores, WholeScores

_MOST_BYTES = 4 << 30
"""Four bytes for each entry of the vocabulary at each position: 4 GiB are 7,000 positions over 150,000 tokens."""


async def continuation_logits(server: AskedServer, question: Continuations, chunk_tokens: int | None) -> list[Scores]:
    body = {
        "prompt_token_ids": list(question.prompt_ids),
        "continuations": [list(option) for option in question.options],
        "chunk_tokens": chunk_tokens,
    }
    answer = await server.calls.post_bytes("/quantgate/continuation_logits", body, _MOST_BYTES)
    try:
        tensors = load(answer)
        logits = [tensors[str(index)] for index in range(len(question.options))]
    except (safetensors.SafetensorError, KeyError) as error:
        raise ValueError(f"the logits are not the tensors that were asked for ({error})") from None
    if any(len(rows) != len(option) for rows, option in zip(logits, question.options, strict=True)):
        raise ValueError("the logits have not one row for each token")
    return [WholeScores(rows) for rows in logits]
