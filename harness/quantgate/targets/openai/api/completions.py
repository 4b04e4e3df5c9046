"""POST /v1/completions: a prompt as it is, without a chat template."""

from __future__ import annotations

from typing import Any

from quantgate.targets.openai.api.dialect import Dialect
from quantgate.targets.openai.piece import (
    StreamPiece,
    degraded_in,
    first_choice,
    listed,
    text_at,
    token_ids_in,
    usage_in,
)
from quantgate.targets.openai.prompt import Prompt


def _put_prompt(prompt: Prompt) -> dict[str, Any]:
    return {"prompt": list(prompt.token_ids) or prompt.text}


def _read(document: dict[str, Any]) -> StreamPiece:
    choice = first_choice(document)
    if choice is None:
        return StreamPiece(usage=usage_in(document))
    return StreamPiece(
        text=text_at(choice, "text"),
        token_ids=token_ids_in(choice),
        logprob_tokens=listed(choice.get("logprobs"), "tokens"),
        finish_reason=text_at(choice, "finish_reason") or None,
        usage=usage_in(document),
        degraded=degraded_in(choice),
    )


COMPLETIONS = Dialect(
    name="completions",
    path="/v1/completions",
    forms=("token_ids", "text"),
    put_prompt=_put_prompt,
    offered_by=lambda capabilities: capabilities.completions,
    read=_read,
)
