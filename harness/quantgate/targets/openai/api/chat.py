"""POST /v1/chat/completions: messages, rendered by the server's own chat template."""

from __future__ import annotations

from typing import Any

from quantgate.targets.openai.api.dialect import Dialect
from quantgate.targets.openai.piece import (
    MalformedEventError,
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
    return {"messages": list(prompt.messages)}


def _read(document: dict[str, Any]) -> StreamPiece:
    """Reasoning is `reasoning_content` with SGLang, llama.cpp and older vLLM, `reasoning` with newer vLLM."""
    choice = first_choice(document)
    if choice is None:
        return StreamPiece(usage=usage_in(document))
    delta = choice.get("delta") or {}
    if not isinstance(delta, dict):
        raise MalformedEventError("delta is no object")
    return StreamPiece(
        text=text_at(delta, "content", "refusal") + _called(delta),
        reasoning_text=text_at(delta, "reasoning_content", "reasoning"),
        token_ids=token_ids_in(choice),
        logprob_tokens=listed(choice.get("logprobs"), "content"),
        finish_reason=text_at(choice, "finish_reason") or None,
        usage=usage_in(document),
        degraded=degraded_in(choice),
    )


def _called(delta: dict[str, Any]) -> str:
    """The text of tool calls that the server has parsed out of the answer: its tokens came all the same.

    Older servers give one call, as `function_call`.
    """
    calls = delta.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    functions.append(delta.get("function_call"))
    parts = [
        (text_at(called, "name"), text_at(called, "arguments")) for called in functions if isinstance(called, dict)
    ]
    return "".join(name + arguments for name, arguments in parts)


CHAT = Dialect(
    name="chat",
    path="/v1/chat/completions",
    forms=("messages",),
    put_prompt=_put_prompt,
    offered_by=lambda capabilities: capabilities.chat,
    read=_read,
)
