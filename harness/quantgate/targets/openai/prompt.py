"""A prompt in the three forms in which a server may take it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quantgate.targets.openai.settings import PromptChoice
from quantgate.workload.plan import PlannedRequest
from quantgate.workload.tokenizer import Tokenizer
from quantgate_engine.errors import ConfigurationError

ChatMessages = tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """`form` says which one is sent; the others are empty."""

    form: PromptChoice
    token_ids: tuple[int, ...] = ()
    text: str = ""
    messages: ChatMessages = ()


def as_token_ids(request: PlannedRequest, _tokenizer: Tokenizer | None) -> Prompt | None:
    return Prompt("token_ids", token_ids=request.prompt_token_ids) if request.prompt_token_ids else None


def as_text(request: PlannedRequest, tokenizer: Tokenizer | None) -> Prompt | None:
    """The very tokens' text where they are known: it holds the rendered chat template."""
    if request.prompt_token_ids and tokenizer is not None:
        return Prompt("text", text=tokenizer.decode(request.prompt_token_ids))
    return Prompt("text", text=request.prompt_text) if request.prompt_text is not None else None


def as_messages(request: PlannedRequest, tokenizer: Tokenizer | None) -> Prompt | None:
    """The trace's messages, or its text as what the user says."""
    if request.messages is not None:
        return Prompt("messages", messages=tuple({"role": m.role, "content": m.content} for m in request.messages))
    text = as_text(request, tokenizer)
    return None if text is None else Prompt("messages", messages=({"role": "user", "content": text.text},))


_FORMS: Mapping[PromptChoice, Callable[[PlannedRequest, Tokenizer | None], Prompt | None]] = {
    "token_ids": as_token_ids,
    "text": as_text,
    "messages": as_messages,
}


def choose_prompt(request: PlannedRequest, forms: tuple[PromptChoice, ...], tokenizer: Tokenizer | None) -> Prompt:
    """The first of `forms` that the request can be given in. Raises ConfigurationError where there is none."""
    for form in forms:
        prompt = _FORMS[form](request, tokenizer)
        if prompt is not None:
            return prompt
    raise ConfigurationError(
        f"Request {request.request_id} has nothing to send as {' or '.join(forms)}; name the model's tokenizer with "
        "--tokenizer, or use a trace with messages or prompts."
    )
