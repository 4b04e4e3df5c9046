"""Small Python functions, judged by form: the answer parses and defines the function that was asked for.

Nothing is executed. Whether the function computes the right thing is what the likelihood twin sees: its distractors
are valid functions that compute something else.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from quantgate.quality.python_answers import defines_function, parse_answer
from quantgate.quality.task_item import Answer, Checked, Task, TaskItem, Text
from quantgate.traces.record import Message

Signature = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_]*\([a-z0-9_, ]*\)$")]

_INSTRUCTION = "Write only the Python function, without explanation."


class CodeItem(TaskItem):
    """`body` and `distractors` are function bodies; the signature `name(a, b)` stands before each."""

    distractors_fail_check: ClassVar[bool] = False

    request: Text
    signature: Signature
    body: Text
    distractors: Annotated[list[Text], Field(min_length=1)]

    def messages(self) -> tuple[Message, ...]:
        return (
            Message("system", _INSTRUCTION),
            Message("user", f"Write a function `{self.signature}` that {self.request}."),
        )

    @property
    def gold(self) -> str:
        return self._function(self.body)

    @property
    def wrong_answers(self) -> tuple[str, ...]:
        return tuple(self._function(body) for body in self.distractors)

    def _function(self, body: str) -> str:
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        return f"def {self.signature}:\n{lines}"

    def check(self, answer: Answer) -> Checked:
        """Correct: the code parses, defines the function with these parameters, and the function returns something."""
        name, _, parameters = self.signature.rstrip(")").partition("(")
        module = parse_answer(answer.text, truncated=answer.truncated)
        count = len([parameter for parameter in parameters.split(",") if parameter.strip()])
        defined = module is not None and defines_function(module, name, count)
        return Checked(defined, parts={"code_parsed": module is not None})


class CodeTask(Task):
    kind: Literal["code"]
    items: Annotated[list[CodeItem], Field(min_length=1)]
