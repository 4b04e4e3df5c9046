"""Messages as GenAI spans record them, in the shape that the reader of chat messages takes."""

from __future__ import annotations

import json
from typing import Any

from quantgate.traces.kind_of_value import kind_of
from quantgate.traces.openai_log.messages import MessageReader
from quantgate.traces.record import Message

# What some instrumentations write for the roles that the conventions name.
_ROLES = {"model": "assistant", "ai": "assistant", "human": "user"}

# A model's thoughts are not sent back to it, and stand in no later turn's history.
_THOUGHTS = frozenset({"reasoning", "thinking"})


def from_json(value: Any, field: str) -> Any:
    """The value, parsed where it is a text of JSON: spans hold structures as such texts, or as they are."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise not_json(field) from None


def not_json(field: str) -> ValueError:
    return ValueError(
        f"field {field}: expected messages as JSON, got a text that is none; where texts were cut off, raise "
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT when spans are recorded, or remove the span"
    )


class ChatMessages:
    """Reads messages with parts or with a content. Errors are ValueErrors that begin with the field."""

    def __init__(self, reader: MessageReader) -> None:
        self._reader = reader

    def read_all(self, value: Any, field: str) -> tuple[Message, ...]:
        if not isinstance(value, list):
            raise ValueError(f"field {field}: expected a list of messages, got {kind_of(value)}")
        return tuple(self.read(message, f"{field}.{index}") for index, message in enumerate(value))

    def read(self, value: Any, field: str, role: str | None = None) -> Message:
        """role: who speaks, whatever the message says."""
        if not isinstance(value, dict):
            raise ValueError(f"field {field}: expected a message with a role and parts, got {kind_of(value)}")
        message = value | self._content(value, field)
        said = role or message.get("role")
        message["role"] = _ROLES.get(said, said) if isinstance(said, str) else said
        return self._reader.read(message, field)

    def instructions(self, value: Any, field: str) -> Message:
        """The system's message, from a text or from parts that stand for themselves."""
        parts = [value] if isinstance(value, str) else value
        return self.read({"parts": parts}, field, "system")

    def _content(self, message: dict[str, Any], field: str) -> dict[str, Any]:
        if "parts" not in message:
            return {"content": _parts_in_text(message.get("content"))}
        parts = message["parts"]
        if not isinstance(parts, list):
            raise ValueError(f"field {field}.parts: expected a list of parts, got {kind_of(parts)}")
        texts: list[str] = []
        calls: list[dict[str, Any]] = []
        for index, part in enumerate(parts):
            place = f"{field}.parts.{index}"
            if isinstance(part, str):
                texts.append(part)
                continue
            kind = part.get("type") if isinstance(part, dict) else None
            if not isinstance(part, dict) or not isinstance(kind, str):
                raise ValueError(f"field {place}: expected a part with a type, got {kind_of(part)}")
            if kind == "text":
                texts.append(_text(part, place))
            elif kind == "tool_call":
                calls.append({"name": part.get("name"), "arguments": part.get("arguments")})
            elif kind == "tool_call_response":
                texts.append(_result(part))
            elif kind in _THOUGHTS:
                self._reader.dropped_parts[kind] += 1
            else:
                self._reader.drop_part(kind, place)
        return {"content": texts, "tool_calls": calls}


def _text(part: dict[str, Any], field: str) -> str:
    text = part.get("content", part.get("text"))
    if not isinstance(text, str):
        raise ValueError(f"field {field}.content: expected a text, got {kind_of(text)}")
    return text


def _result(part: dict[str, Any]) -> str:
    """What a tool gave back; the conventions call it a response in the schema, and a result in their examples."""
    result = part.get("response", part.get("result"))
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _parts_in_text(content: Any) -> Any:
    """The content, as a list of parts where a text holds one: OpenLLMetry writes them so, and agents on Bedrock."""
    if not isinstance(content, str) or not content.startswith('[{"'):
        return content
    try:
        parts = json.loads(content)
    except (ValueError, RecursionError):
        return content
    if all(isinstance(part, dict) and part.keys() == {"text"} for part in parts):
        return [{"type": "text", **part} for part in parts]
    typed = all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts)
    return parts if typed else content
