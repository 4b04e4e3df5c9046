"""One entry of a file of conversations: who said what, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quantgate.traces.import_settings import OtherParts
from quantgate.traces.kind_of_value import kind_of
from quantgate.traces.openai_log.half_characters import whole_text
from quantgate.traces.record import Message

# What the files in circulation call those who speak. A function's call is what the model answered.
_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "function_call": "assistant",
    "system": "system",
    "tool": "tool",
    "function_response": "tool",
    "observation": "tool",
}
_OTHER_PARTS = ("image", "images", "video", "videos", "audio", "audios")


@dataclass(frozen=True, slots=True)
class Conversation:
    """name: the file's own, None where it has none. other_parts: what it has beside text, such as images."""

    name: str | None
    system: Message | None
    turns: tuple[Message, ...]
    offered_tools: bool
    other_parts: tuple[str, ...]


def conversation_of(row: dict[str, Any], other_parts: OtherParts) -> Conversation:
    """Raises ValueError, which begins with the field, for what is no conversation; it quotes nothing that was said."""
    turns = row.get("conversations")
    if not isinstance(turns, list):
        raise ValueError(f"field conversations: expected a list of turns, got {kind_of(turns)}")
    other = tuple(name for name in _OTHER_PARTS if row.get(name))
    if other and other_parts == "refuse":
        raise ValueError(
            f"field {other[0]}: expected a conversation of texts alone, got one with {other[0]}, which is no text to "
            "replay; leave such conversations out, or drop the parts (other_parts: drop in a suite, --other-parts drop "
            "without one)"
        )
    system = _text(row.get("system"), "system")
    return Conversation(
        _name(row.get("id")),
        Message("system", system) if system.strip() else None,
        tuple(_message(turn, f"conversations.{index}") for index, turn in enumerate(turns)),
        bool(row.get("tools")),
        other,
    )


def _name(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError(f"field id: expected a text of at least one character or an integer, got {kind_of(value)}")
    return whole_text(str(value), "id")


def _message(turn: Any, field: str) -> Message:
    if not isinstance(turn, dict):
        raise ValueError(f"field {field}: expected a turn with from and value, got {kind_of(turn)}")
    # Some write turns as chat messages are written.
    who, what = ("from", "value") if "from" in turn or "role" not in turn else ("role", "content")
    role = turn.get(who)
    if not isinstance(role, str) or role not in _ROLES:
        raise ValueError(f"field {field}.{who}: expected one of {', '.join(_ROLES)}, got {role!r:.40}")
    return Message(_ROLES[role], _text(turn.get(what), f"{field}.{what}"))


def _text(value: Any, field: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"field {field}: expected a text, got {kind_of(value)}")
    return whole_text(value, field)
