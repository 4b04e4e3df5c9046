"""Greedy answers to task items: to token ids where the server takes them, else to messages under its own template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quantgate.capabilities.answer_shapes import first_choice, returned_ids, text_of, usage_of
from quantgate.quality.over_http.asked_server import AskedServer
from quantgate.quality.quality_model import ChatPrompt, GeneratedAnswer, Tokenizer


async def answer_prompt(
    server: AskedServer, prompt: ChatPrompt, max_tokens: int, tokenizer: Tokenizer | None, *, token_ids_returned: bool
) -> GeneratedAnswer:
    """Raises EndpointError, and ValueError where the answer has no text."""
    fields: dict[str, Any] = {"max_tokens": max_tokens, "temperature": 0}
    if not prompt.token_ids:
        return _told(await _chat(server, prompt, fields))
    if token_ids_returned:
        fields["return_token_ids"] = True
    answer = await server.complete(prompt.token_ids, **fields)
    token_ids = returned_ids(answer)
    if not token_ids or tokenizer is None:
        return _told(answer)
    # Decoded here, as the answers of in-process arms are: servers differ in how they write special tokens.
    stopped = _stopped(first_choice(answer))
    kept = token_ids[:-1] if stopped else token_ids
    return GeneratedAnswer(tokenizer.decode(kept, skip_special_tokens=True), len(kept), truncated=not stopped)


async def _chat(server: AskedServer, prompt: ChatPrompt, fields: Mapping[str, Any]) -> Any:
    messages = [{"role": message.role, "content": message.content} for message in prompt.messages]
    template = {"chat_template_kwargs": dict(server.template_arguments)} if server.template_arguments else {}
    body = {**server.common, **template, "messages": messages, **fields}
    return await server.calls.post_json("/v1/chat/completions", body)


def _told(answer: Any) -> GeneratedAnswer:
    text = text_of(answer)
    if text is None:
        raise ValueError("the answer has no text")
    stopped = _stopped(first_choice(answer))
    counted = usage_of(answer, "completion_tokens")
    tokens = len(text.split()) if counted is None else max(0, counted - stopped)
    return GeneratedAnswer(text, tokens, truncated=not stopped)


def _stopped(choice: Mapping[str, Any]) -> bool:
    """Whether the answer ended by itself, by a token that is counted but is no text."""
    return bool(choice.get("finish_reason") == "stop")
