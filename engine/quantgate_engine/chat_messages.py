"""Chat messages as callers give them, checked before a model's template reads them: many templates write anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from quantgate_engine.argument_checks import refuse_argument
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
"""OpenAI's, old ones too. A template that knows fewer refuses the others itself."""

ROLES: tuple[str, ...] = get_args(Role)

ChatMessage = Mapping[str, Any]


def is_message(item: object) -> bool:
    """A mapping with a role and a content; an assistant's may lack the content, because it may be all tool calls."""
    return isinstance(item, Mapping) and "role" in item and ("content" in item or item["role"] == "assistant")


def for_template(message: ChatMessage, place: str) -> dict[str, Any]:
    """The message with its content as one text; what else it carries goes to the template as it is.

    place: what a sentence calls it. Raises ConfigurationError for another role, and for a content that is no text.
    """
    role = message["role"]
    if role not in ROLES:
        raise refuse_argument(f"The role of {place}", role, f"one of {', '.join(ROLES)}")
    return {**message, "content": _text(message.get("content"), place, may_lack=role == "assistant")}


def require_characters(text: str, place: str) -> None:
    """Half a surrogate pair is no character, and no tokenizer takes it."""
    try:
        text.encode()
    except UnicodeEncodeError as wrong:
        raise ConfigurationError(
            f"{place} has {shown(text[wrong.start])} at position {wrong.start}, which is no character; expected text "
            "that UTF-8 can hold."
        ) from None


def _text(content: object, place: str, *, may_lack: bool) -> str:
    if content is None and may_lack:
        return ""
    parts = content if isinstance(content, list | tuple) else [{"type": "text", "text": content}]
    texts = [part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None for part in parts]
    found = [text for text in texts if isinstance(text, str)]
    if len(found) != len(texts):
        raise refuse_argument(f"The content of {place}", content, "a text, or a list of parts of the type 'text'")
    text = "\n".join(found)
    require_characters(text, f"The content of {place}")
    return text
