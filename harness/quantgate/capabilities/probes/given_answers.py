"""What only our own server gives: answers decoded as told, and the whole logits of given answers."""

from __future__ import annotations

from collections.abc import Sequence

import safetensors
from safetensors.numpy import load

from quantgate.capabilities.answer_shapes import returned_ids
from quantgate.capabilities.probes.asking import Asking


async def gives_forced_tokens(asking: Asking, token_ids: Sequence[int]) -> bool:
    """Asked to answer the prompt's own ids backwards, which no model would do by itself."""
    forced = list(reversed(token_ids))[:4]
    answer = await asking.completion(
        "forced tokens",
        token_ids,
        max_tokens=len(forced),
        temperature=0,
        forced_token_ids=forced,
        return_token_ids=True,
    )
    return returned_ids(answer) == forced


async def gives_continuation_logits(asking: Asking, token_ids: Sequence[int]) -> bool:
    forced = list(token_ids[-2:])
    body = {"prompt_token_ids": list(token_ids[:-2]), "continuations": [forced], "chunk_tokens": None}
    answer = await asking.tried("whole logits", asking.calls.post_bytes("/quantgate/continuation_logits", body))
    try:
        return answer is not None and load(answer)["0"].shape[0] == len(forced)
    except (safetensors.SafetensorError, KeyError, ValueError):
        return False
