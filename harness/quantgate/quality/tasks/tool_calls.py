"""Tool calls as JSON: the right tool with the right arguments, or the explicit statement that no tool fits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from quantgate.quality.json_answers import json_objects
from quantgate.quality.task_item import Answer, Checked, StrictModel, Task, TaskItem, Text
from quantgate.quality.tool_schema import ArgumentType, ArgumentValue, fits_type, same_value
from quantgate.traces.record import Message

ToolName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]

NO_TOOL = "none"
_INSTRUCTION = 'Reply with one JSON call {"name": ..., "arguments": {...}}. If no tool fits, use the name "none".'

# Two worked examples show the form, an abstention and a call; their tools stand in no item.
_EXAMPLE_TOOLS = "Tools: show_film(title: string); find_book(author: string)"
_EXAMPLES = (
    Message("user", f"{_EXAMPLE_TOOLS}\nRequest: Why is the sky blue?"),
    Message("assistant", '{"name": "none", "arguments": {}}'),
    Message("user", f"{_EXAMPLE_TOOLS}\nRequest: Show me the film Alps."),
    Message("assistant", '{"name": "show_film", "arguments": {"title": "Alps"}}'),
)


class AllowedCall(StrictModel):
    """The right call; each argument lists its accepted values, the gold first."""

    name: ToolName
    arguments: dict[str, Annotated[list[ArgumentValue], Field(min_length=1)]]


class WrongCall(StrictModel):
    """A plausible wrong call."""

    name: ToolName
    arguments: dict[str, ArgumentValue]


class ToolItem(TaskItem):
    """`call` is null where no tool fits; the arm must then say so in the same JSON form.

    Abstention is explicit so that an arm which writes no JSON at all is not right by accident.
    """

    request: Text
    tools: Annotated[dict[ToolName, dict[str, ArgumentType]], Field(min_length=1)]
    call: AllowedCall | None
    distractors: Annotated[list[WrongCall], Field(min_length=1)]

    def contradiction(self) -> str | None:
        if NO_TOOL in self.tools:
            return f"the name {NO_TOOL!r} stands for no tool; call the tool something else"
        if not self._fits_schema(json.loads(self.gold)):
            return "the call does not fit the tools that the item declares"
        return None

    def messages(self) -> tuple[Message, ...]:
        instruction, request = self.twin_messages()
        return (instruction, *_EXAMPLES, request)

    def twin_messages(self) -> tuple[Message, ...]:
        """Without the examples, which ranking does not need and which would double its cost."""
        tools = "; ".join(
            f"{name}({', '.join(f'{argument}: {kind}' for argument, kind in arguments.items())})"
            for name, arguments in self.tools.items()
        )
        return (Message("system", _INSTRUCTION), Message("user", f"Tools: {tools}\nRequest: {self.request}"))

    @property
    def gold(self) -> str:
        if self.call is None:
            return _call_text(NO_TOOL, {})
        return _call_text(self.call.name, {name: values[0] for name, values in self.call.arguments.items()})

    @property
    def wrong_answers(self) -> tuple[str, ...]:
        return tuple(_call_text(wrong.name, wrong.arguments) for wrong in self.distractors)

    def check(self, answer: Answer) -> Checked:
        """Correct: exactly one JSON call, of the right tool, whose arguments all have an accepted value.

        The funnel of three: JSON was written, it fits a declared tool, it is the right call. Values are compared as
        BFCL's AST checker compares them (see `tool_schema`).
        """
        objects = json_objects(answer.text)
        call = objects[0] if len(objects) == 1 else None
        valid = call is not None and self._fits_schema(call)
        named = call is not None and valid and call["name"] == (self.call.name if self.call else NO_TOOL)
        return Checked(
            correct=call is not None and named and self._right_arguments(call["arguments"]),
            parts={"schema_valid": valid, "tool_correct": named},
            behaviour={"json_parsed": call is not None},
        )

    def _fits_schema(self, call: Mapping[str, Any]) -> bool:
        if set(call) != {"name", "arguments"} or not isinstance(call["arguments"], dict):
            return False
        name, arguments = call["name"], call["arguments"]
        if name == NO_TOOL:
            return not arguments
        declared = self.tools.get(name) if isinstance(name, str) else None
        if declared is None or set(arguments) != set(declared):
            return False
        return all(fits_type(arguments[argument], kind) for argument, kind in declared.items())

    def _right_arguments(self, arguments: Mapping[str, Any]) -> bool:
        allowed = self.call.arguments if self.call else {}
        return all(any(same_value(arguments[name], value) for value in values) for name, values in allowed.items())


class ToolTask(Task):
    kind: Literal["tool_calls"]
    items: Annotated[list[ToolItem], Field(min_length=1)]


def _call_text(name: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
