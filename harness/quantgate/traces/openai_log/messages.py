"""OpenAI-style chat messages as plain messages of a role and a text."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from quantgate.traces.import_settings import OtherParts
from quantgate.traces.kind_of_value import kind_of
from quantgate.traces.openai_log.half_characters import whole_text
from quantgate.traces.record import Message

# What newer and older APIs call the roles that chat templates know.
_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}


class MessageReader:
    """Reads messages and counts, by type, the parts that it dropped. Raises ValueError, naming the place, for others.

    What was written in a message is never quoted in an error.
    """

    def __init__(self, other_parts: OtherParts) -> None:
        self._other_parts = other_parts
        self.dropped_parts: Counter[str] = Counter()
        # A conversation's later turns repeat its earlier ones: each message is held once.
        self._held: dict[Message, Message] = {}

    def read_all(self, value: Any, field: str) -> tuple[Message, ...]:
        if not isinstance(value, list):
            raise ValueError(f"field {field}: expected a list of messages, got {kind_of(value)}")
        return tuple(self.read(message, f"{field}.{index}") for index, message in enumerate(value))

    def read(self, value: Any, field: str) -> Message:
        """One message; an assistant's tool calls stand after its text as one JSON list."""
        if not isinstance(value, dict):
            raise ValueError(f"field {field}: expected a message with role and content, got {kind_of(value)}")
        role = value.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            raise ValueError(f"field {field}.role: expected one of {', '.join(_ROLES)}, got {role!r:.40}")
        calls = value.get("tool_calls") or ([value["function_call"]] if value.get("function_call") else [])
        text = self._content(value.get("content"), f"{field}.content")
        if calls:
            text = "\n".join(filter(None, (text, _tool_calls(calls, f"{field}.tool_calls"))))
        message = Message(_ROLES[role], whole_text(text, f"{field}.content"))
        return self._held.setdefault(message, message)

    def _content(self, content: Any, field: str) -> str:
        if content is None:
            return ""
        if isinstance(content, str):
            return content
        if not isinstance(content, list):
            raise ValueError(f"field {field}: expected a text or a list of parts, got {kind_of(content)}")
        texts = (self._part(part, f"{field}.{index}") for index, part in enumerate(content))
        # Servers whose chat templates take one text join the parts by line ends (vLLM does).
        return "\n".join(text for text in texts if text is not None)

    def _part(self, part: Any, field: str) -> str | None:
        if isinstance(part, str):
            return part
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(kind, str):
            raise ValueError(f"field {field}: expected a part with a type, got {kind_of(part)}")
        if kind in _TEXT_PARTS:
            text = part.get(_TEXT_PARTS[kind])
            if not isinstance(text, str):
                raise ValueError(f"field {field}.{_TEXT_PARTS[kind]}: expected a text, got {kind_of(text)}")
            return text
        self.drop_part(kind, field)
        return None

    def drop_part(self, kind: str, field: str) -> None:
        """Counts a part that is no text, if such parts are to be dropped; else raises ValueError."""
        if self._other_parts == "refuse":
            raise ValueError(
                f"field {field}: expected a part of type text, got {kind!r:.40}, which is no text to replay; leave "
                "such rows out, or drop the parts (other_parts: drop in a suite, --other-parts drop without one)"
            )
        self.dropped_parts[kind] += 1


def _tool_calls(calls: Any, field: str) -> str:
    """The calls as JSON, name and arguments, without the ids that differ from request to request."""
    if not isinstance(calls, list):
        raise ValueError(f"field {field}: expected a list of tool calls, got {kind_of(calls)}")
    plain = []
    for index, call in enumerate(calls):
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise ValueError(f"field {field}.{index}: expected a tool call with a function, got {kind_of(call)}")
        plain.append({"name": function.get("name"), "arguments": _parsed(function.get("arguments"))})
    return json.dumps(plain, ensure_ascii=False)


def _parsed(arguments: Any) -> Any:
    """Arguments come as JSON inside a text; where a model wrote none, they stay the text that it wrote."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
