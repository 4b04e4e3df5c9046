"""Answers in JSON: the right call, a call that almost is it, and the explicit abstention."""

from __future__ import annotations

from typing import Any

import pytest

from quantgate.quality.task_item import Answer, TaskItem
from quantgate.quality.tasks.tool_calls import ToolItem


def _correct(item: TaskItem, text: str, *, truncated: bool = False) -> bool:
    return item.check(Answer(text, truncated=truncated)).correct


_TOOLS: dict[str, Any] = {
    "get_weather": {"city": "string", "days": "integer"},
    "lock_door": {"door": "string", "locked": "boolean"},
    "convert": {"amount": "number"},
}


def _tool_item(request: str, call: dict[str, Any] | None, wrong: dict[str, Any]) -> ToolItem:
    return ToolItem.model_validate(
        {"id": "tool-1", "request": request, "tools": _TOOLS, "call": call, "distractors": [wrong]}
    )


WEATHER = _tool_item(
    "Weather in New York for 3 days?",
    {"name": "get_weather", "arguments": {"city": ["New York", "NYC"], "days": [3]}},
    {"name": "get_weather", "arguments": {"city": "York", "days": 3}},
)


@pytest.mark.parametrize(
    ("text", "correct"),
    [
        ('{"name": "get_weather", "arguments": {"city": "New York", "days": 3}}', True),
        ('{"arguments": {"days": 3, "city": "NYC"}, "name": "get_weather"}', True),
        ('{"name": "get_weather", "arguments": {"city": "new york", "days": 3}}', True),
        ('{"name": "get_weather", "arguments": {"city": "New-York.", "days": 3}}', True),
        ('```json\n{"name": "get_weather", "arguments": {"city": "NYC", "days": 3}}\n```', True),
        ('<tool_call>{"name":"get_weather","arguments":{"city":"NYC","days":3}}</tool_call>', True),
        ('Sure! {"name": "get_weather", "arguments": {"city": "NYC", "days": 3}} Done.', True),
        ('{"name": "get_weather", "arguments": {"city": "N\\u0059C", "days": 3}}', True),
        ('{"name": "get_weather", "arguments": {"city": "New York", "days": "3"}}', False),
        ('{"name": "get_weather", "arguments": {"city": "New York", "days": 3.0}}', False),
        ('{"name": "get_weather", "arguments": {"city": "New York", "days": true}}', False),
        ('{"name": "get_weather", "arguments": {"city": "New York"}}', False),
        ('{"name": "get_weather", "arguments": {"city": "NYC", "days": 3, "unit": "C"}}', False),
        ('{"name": "get_weather", "arguments": {"city": "Newark", "days": 3}}', False),
        ('{"name": "getWeather", "arguments": {"city": "NYC", "days": 3}}', False),
        ('{"name": "convert", "arguments": {"amount": 3}}', False),
        ('{"name": "none", "arguments": {}}', False),
        ('{"name": "get_weather", "parameters": {"city": "NYC", "days": 3}}', False),
        ('{"name": "get_weather", "arguments": "NYC, 3"}', False),
        ('{"name": "get_weather", "arguments": {"city": "NYC", "days": 3}', False),
        ("{'name': 'get_weather', 'arguments': {'city': 'NYC', 'days': 3}}", False),
        ('get_weather(city="NYC", days=3)', False),
        ('{"name": "get_weather", "arguments": {"city": "NYC", "city": "NYC", "days": 3}}', False),
        ('{"name": "get_weather", "arguments": {"city": "NYC", "days": NaN}}', False),
        ('{"call": {"name": "get_weather", "arguments": {"city": "NYC", "days": 3}}}', False),
        (
            '{"name": "get_weather", "arguments": {"city": "NYC", "days": 3}}'
            '{"name": "get_weather", "arguments": {"city": "Boston", "days": 3}}',
            False,
        ),
        ("{" * 5000, False),
        ('{"a":' * 100_000, False),
        ('{"name": ' + "9" * 5000 + "}", False),
        ("", False),
    ],
)
def test_tool_call(text: str, correct: bool) -> None:
    assert _correct(WEATHER, text) is correct


JOKE = _tool_item("Tell me a joke.", None, {"name": "convert", "arguments": {"amount": 1}})


@pytest.mark.parametrize(
    ("text", "correct"),
    [
        ('{"name": "none", "arguments": {}}', True),
        ('{"name": "none", "arguments": {"reason": "no tool"}}', False),
        ("I have no tool for that.", False),
        ("", False),
        ('{"name": "convert", "arguments": {"amount": 1}}', False),
        ('{"name": null, "arguments": {}}', False),
    ],
)
def test_abstention_must_be_explicit(text: str, correct: bool) -> None:
    assert _correct(JOKE, text) is correct


def test_the_funnel_of_a_tool_call() -> None:
    def steps(text: str) -> tuple[bool, bool, bool, bool]:
        checked = WEATHER.check(Answer(text))
        return (
            checked.behaviour["json_parsed"],
            checked.parts["schema_valid"],
            checked.parts["tool_correct"],
            checked.correct,
        )

    assert steps("no call") == (False, False, False, False)
    assert steps('{"hello": 1}') == (True, False, False, False)
    assert steps('{"name": "convert", "arguments": {"amount": 1.5}}') == (True, True, False, False)
    assert steps('{"name": "get_weather", "arguments": {"city": "Rome", "days": 3}}') == (True, True, True, False)
    assert steps(WEATHER.gold) == (True, True, True, True)
