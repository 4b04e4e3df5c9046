"""What was asked and answered in a span, in whichever of four ways its texts were recorded.

The conventions' newest way is `gen_ai.input.messages`; before it came events, one a message, and before those the
attributes `gen_ai.prompt` and `gen_ai.completion`, which OpenLLMetry writes with indices.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from quantgate.traces.import_settings import OtherParts
from quantgate.traces.openai_log.half_characters import whole_text
from quantgate.traces.openai_log.lookup import first_present
from quantgate.traces.openai_log.messages import MessageReader
from quantgate.traces.otel_spans.chat_messages import ChatMessages, from_json, not_json
from quantgate.traces.otel_spans.span import Event, Span
from quantgate.traces.record import Message

_DETAILS = frozenset({"gen_ai.client.inference.operation.details"})
_PROMPT_EVENTS = frozenset({"gen_ai.content.prompt"})
_ANSWER_EVENTS = frozenset({"gen_ai.content.completion"})
_ROLE_OF_EVENT = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CHOICE = "gen_ai.choice"
_INDEXED = re.compile(r"gen_ai\.(prompt|completion)\.(\d{1,6})\.(role|content|tool_calls\.(\d{1,4})\.(name|arguments))")

Prompt = tuple[tuple[Message, ...] | None, str | None]


class SpanTexts:
    """Reads the texts of spans. Errors are ValueErrors that begin with the field; no error quotes a text."""

    def __init__(self, other_parts: OtherParts) -> None:
        self.reader = MessageReader(other_parts)
        self._chat = ChatMessages(self.reader)

    def prompt(self, span: Span, events: list[Event]) -> Prompt:
        """Messages, or a prompt without a chat, or neither where no text was recorded."""
        field, value = _recorded(span, events, "gen_ai.input.messages", _DETAILS)
        if field:
            messages = self._chat.read_all(from_json(value, field), field)
            field, value = _recorded(span, events, "gen_ai.system_instructions", _DETAILS)
            if field:
                messages = (self._chat.instructions(_instructions(value), field), *messages)
            return _with_text(messages)
        indexed = _indexed(span, "prompt")
        if indexed:
            return _with_text(self._chat.read_all(indexed, "attributes.gen_ai.prompt"))
        field, value = _recorded(span, events, "gen_ai.prompt", _PROMPT_EVENTS)
        if field:
            listed = _messages_in(value, field)
            return (
                (None, whole_text(value, field)) if listed is None else _with_text(self._chat.read_all(listed, field))
            )
        return _with_text(
            tuple(
                self._chat.read(_body(event), event.field, _ROLE_OF_EVENT[event.name])
                for event in events
                if event.name in _ROLE_OF_EVENT
            )
        )

    def answer(self, span: Span, events: list[Event]) -> tuple[Message | None, int]:
        """The first recorded answer, and how many there are."""
        field, value = _recorded(span, events, "gen_ai.output.messages", _DETAILS)
        if field:
            return self._first(from_json(value, field), field)
        indexed = _indexed(span, "completion")
        if indexed:
            return self._first(indexed, "attributes.gen_ai.completion")
        field, value = _recorded(span, events, "gen_ai.completion", _ANSWER_EVENTS)
        if field:
            listed = _messages_in(value, field)
            return self._first([{"content": value}] if listed is None else listed, field)
        choices = [_body(event) for event in events if event.name == _CHOICE]
        return self._first([choice for choice in choices if len(choice) > 0], f"events of {_CHOICE}")

    def _first(self, answers: Any, field: str) -> tuple[Message | None, int]:
        if not isinstance(answers, list) or not answers:
            return None, 0
        return self._chat.read(answers[0], f"{field}.0", "assistant"), len(answers)


def _with_text(messages: tuple[Message, ...]) -> Prompt:
    """The messages, unless none of them says anything: with contents left out, events tell roles alone."""
    return (messages if any(message.content for message in messages) else None), None


def _recorded(span: Span, events: Iterable[Event], name: str, of_events: frozenset[str]) -> tuple[str, Any]:
    """Where the attribute stands, on the span or on such an event, and its value; ("", None) where nowhere."""
    places = [("attributes", span.attributes)]
    places += [(event.field, event.attributes) for event in events if event.name in of_events]
    for field, attributes in places:
        path, value = first_present(attributes, (name,))
        if path and value not in ("", []):
            return f"{field}.{name}", value
    return "", None


def _indexed(span: Span, which: str) -> list[dict[str, Any]]:
    """Messages from attributes such as `gen_ai.prompt.0.content`. Raises ValueError where one is missing."""
    found: dict[int, dict[str, Any]] = {}
    calls: dict[int, dict[int, dict[str, Any]]] = {}
    for key, value in span.attributes.items():
        match = _INDEXED.fullmatch(key)
        if match is None or match[1] != which:
            continue
        message = found.setdefault(int(match[2]), {})
        if match[4] is None:
            message[match[3]] = value
        else:
            calls.setdefault(int(match[2]), {}).setdefault(int(match[4]), {})[match[5]] = value
    for index in range(len(found)):
        if index not in found:
            raise ValueError(
                f"field attributes.gen_ai.{which}.{index}: expected a message, as a later one is there, got nothing; "
                "where attributes were left off, raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT when spans are recorded, or "
                "remove the span"
            )
        if index in calls:
            found[index]["tool_calls"] = [calls[index][place] for place in sorted(calls[index])]
    return [found[index] for index in range(len(found))]


def _messages_in(value: Any, field: str) -> list[Any] | None:
    """The messages that a prompt's or completion's value holds; None for a text that is the prompt itself."""
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        raise ValueError(f"field {field}: expected a text or a list of messages, got another value")
    if not value.lstrip().startswith(("[{", '{"')):
        return None
    try:
        held = json.loads(value)
    except (ValueError, RecursionError):
        if value.lstrip().startswith("{"):
            return None
        # A list of messages in Python's spelling, or one that was cut off: as a prompt it would be replayed as it is.
        raise not_json(field) from None
    if isinstance(held, dict) and isinstance(held.get("messages"), list):
        return list(held["messages"])
    messages = [held] if isinstance(held, dict) else held
    spoken = all(isinstance(message, dict) and {"role", "content"} & message.keys() for message in messages)
    return messages if spoken else None


def _instructions(value: Any) -> Any:
    """Parts, also where a text holds them; else the text itself."""
    if not isinstance(value, str) or not value.startswith("["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _body(event: Event) -> dict[str, Any]:
    """The message of an event: among its attributes, or as JSON in one of them."""
    body = dict(event.attributes)
    for name in ("gen_ai.event.content", "message"):
        held = body.pop(name, None)
        if held is not None:
            in_json = isinstance(held, str) and held.lstrip().startswith("{")
            inner = from_json(held, f"{event.field}.{name}") if in_json else held
            body |= inner if isinstance(inner, dict) else {"content": inner}
    if isinstance(body.get("message"), dict):
        body |= body.pop("message")
    if isinstance(body.get("tool_calls"), str):
        body["tool_calls"] = from_json(body["tool_calls"], f"{event.field}.tool_calls")
    return {name: body[name] for name in ("content", "parts", "tool_calls") if body.get(name) is not None}
