"""Prompts that are to be run, as token ids; one that is too long is refused before work is spent on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quantgate_engine.chat_messages import ChatMessage
from quantgate_engine.counted import counted
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.prompts import require_template_variables
from quantgate_engine.server.api_error import ApiError, bad_request
from quantgate_engine.server.service import Service


async def encode_prompts(
    service: Service, prompts: Sequence[str | list[int]], *, add_special_tokens: bool
) -> list[tuple[int, ...]]:
    """Token ids of the field `prompt`. Raises ApiError 400 for one that is empty, too long, or of other tokens."""
    encoded = []
    for number, prompt in enumerate(prompts):
        where = "prompt" if len(prompts) == 1 else f"prompt.{number}"
        if isinstance(prompt, str):
            _refuse_long_text(service, prompt, where)
        else:
            refuse_long(service, len(prompt), where, "prompt")
        token_ids = await service.encode(prompt, "prompt", add_special_tokens=add_special_tokens)
        if not token_ids:
            raise bad_request(f"{where} is empty; expected at least one token.", "prompt")
        refuse_long(service, len(token_ids), where, "prompt")
        encoded.append(token_ids)
    return encoded


async def encode_chat(
    service: Service, messages: Sequence[ChatMessage], template_arguments: Mapping[str, Any]
) -> tuple[int, ...]:
    """Token ids of the field `messages`. Raises ApiError 400 where the template refuses them or they are too long.

    Its size tells nothing before the template has written it: templates leave out what they like. Where admission cuts
    what is too long, it is for the engine to say whether that is enough.
    """
    token_ids = await apply_template(service, messages, template_arguments)
    if not token_ids:
        raise bad_request("messages make an empty prompt; expected at least one token.", "messages")
    if not service.engine.degrades:
        refuse_long(service, len(token_ids), "messages", "messages")
    return token_ids


async def apply_template(
    service: Service, messages: Sequence[ChatMessage], template_arguments: Mapping[str, Any]
) -> tuple[int, ...]:
    """Token ids of messages of any length. Raises ApiError 400 where the template does not take them."""
    try:
        require_template_variables(service.tokenizer, template_arguments)
    except ConfigurationError as wrong:
        raise bad_request(f"chat_template_kwargs: {wrong}", "chat_template_kwargs") from wrong
    return await service.encode(messages, "messages", template_arguments=template_arguments)


def refuse_long(service: Service, tokens: int, where: str, param: str, at_least: str = "") -> None:
    """Raises ApiError 400 above the longest sequence that the engine ever runs. at_least: qualifies the number."""
    longest = service.engine.max_sequence_tokens
    if tokens > longest:
        raise ApiError(
            400,
            f"{where} has {at_least}{counted(tokens, 'token')}; expected at most {longest}, the longest context that "
            "runs here.",
            param=param,
            code="context_length_exceeded",
        )


def _refuse_long_text(service: Service, text: str, where: str) -> None:
    """By a lower bound: no token stands for more bytes than the vocabulary's longest."""
    if len(text) <= service.engine.max_sequence_tokens:
        return
    fewest = -(-len(text.encode()) // service.token_pieces.longest_bytes)
    refuse_long(service, fewest, where, "prompt", "at least ")
