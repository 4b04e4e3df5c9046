"""Every checker against a table of answers that look right or wrong and are the other."""

from __future__ import annotations

from typing import Any

import pytest

from quantgate.quality.task_item import Answer, TaskItem
from quantgate.quality.tasks.code import CodeItem
from quantgate.quality.tasks.multi_turn import MultiTurnItem
from quantgate.quality.tasks.multiple_choice import ChoiceItem
from quantgate.quality.tasks.rag import RagItem
from quantgate.quality.tasks.tool_calls import ToolItem


def _correct(item: TaskItem, text: str, *, truncated: bool = False) -> bool:
    return item.check(Answer(text, truncated=truncated)).correct


RAG = RagItem(
    id="rag-1",
    documents={"D1": "Refunds take 14 days.", "D2": "Delivery costs 1,200 yen.", "D3": "Orders arrive on Friday."},
    question="How much is delivery?",
    answers=["1,200 yen", "1200 yen"],
    document="D2",
    distractors=["14 yen", "1,300 yen"],
)


@pytest.mark.parametrize(
    ("text", "correct"),
    [
        ("1,200 yen [D2]", True),
        ("1200 yen [D2]", True),
        ("1,200 YEN (D2).", True),
        ("According to D2, delivery costs 1,200 yen.", True),
        ("**1,200 yen** [D2][D2]", True),
        ("Delivery costs 1,200\nyen. [D2]", True),
        ("It is 1,200 yen, see [D2]!", True),
        ("1,200\u00a0yen [D2]", True),
        ("1,200 yen", False),
        ("[D2]", False),
        ("", False),
        ("1,200 yen [D1]", False),
        ("1,200 yen [D2][D3]", False),
        ("1,200 yen [D22]", False),
        ("11,200 yen [D2]", False),
        ("1,2000 yen [D2]", False),
        ("1,200.50 yen [D2]", False),
        ("200 yen [D2]", False),
        ("1,300 yen [D2]", False),
        ("yen 1,200 [D2]", False),
        ("1,200 yens [D2]", False),
        ("1,200 yen AD2", False),
        ("1,200 yen " + "and so on " * 12 + "[D2]", False),
    ],
)
def test_rag(text: str, correct: bool) -> None:
    assert _correct(RAG, text) is correct


def test_rag_tells_which_half_failed() -> None:
    assert RAG.check(Answer("1,200 yen [D1]")).parts == {"answer_correct": True, "citation_correct": False}
    assert RAG.check(Answer("900 yen [D2]")).parts == {"answer_correct": False, "citation_correct": True}


CODE = CodeItem(id="code-1", request="adds", signature="add(a, b)", body="return a + b", distractors=["return a - b"])


@pytest.mark.parametrize(
    ("text", "correct"),
    [
        ("def add(a, b):\n    return a + b", True),
        ("```python\ndef add(a, b):\n    return a + b\n```", True),
        ("```\ndef add(a, b):\n    return a + b\n```\nThis adds two numbers.", True),
        ("```py\ndef add(a, b):\n    return a + b", True),
        ("Here it is:\n\ndef add(a, b):\n    return a + b", True),
        ("import math\n\ndef add(a, b):\n    return math.fsum([a, b])", True),
        ("def add(x, y, /):\n    return x + y", True),
        ("def add(*numbers):\n    return sum(numbers)", True),
        ("def add(a, b, c=0):\n    return a + b + c", True),
        ("def add(a: int, b: int) -> int:\n    '''Adds.'''\n    return a + b", True),
        ("def add(a, b):\n    yield a + b", True),
        ("def add(a, b):\n    return a - b", True),  # form only: the twin judges the meaning
        ("", False),
        ("The sum of a and b is a + b.", False),
        ("add = lambda a, b: a + b", False),
        ("def add(a, b)\n    return a + b", False),
        ("def add(a, b):\nreturn a + b", False),
        ("def add(a, b):\n    pass", False),
        ("def add(a, b):\n    print(a + b)", False),
        ("def add(a, b):\n    return", False),
        ("def add(a):\n    return a", False),
        ("def add(a, b, c):\n    return a + b", False),
        ("def add(a, b, *, base):\n    return a + b", False),
        ("def sum_two(a, b):\n    return a + b", False),
        ("class Adder:\n    def add(self, a):\n        return a", False),
        ("def add(a, b):\n    def inner():\n        return a + b", False),
        ("def add(a, b):\n    return a + b\n\nThis function adds two numbers.", False),
        ("```javascript\nfunction add(a, b) { return a + b; }\n```", False),
        ("def add(a, b):\n    return a + b\x00", False),
        ("def add(a, b):\n    return " + "(" * 400, False),
    ],
)
def test_code(text: str, correct: bool) -> None:
    assert _correct(CODE, text) is correct


@pytest.mark.parametrize(
    ("text", "correct"),
    [
        ("def add(a, b):\n    return a + b\n\nprint(add(1,", True),
        ("def add(a, b):\n    return a + b\n\nThis func", True),
        ("def add(a, b):\n    total = a +", False),
    ],
)
def test_code_cut_by_the_token_limit_is_judged_by_its_whole_lines(text: str, correct: bool) -> None:
    assert _correct(CODE, text, truncated=True) is correct
    assert not _correct(CODE, text)


def test_odd_escapes_in_code_raise_no_warning() -> None:
    assert _correct(CODE, 'def add(a, b):\n    return "\\d" + a + b')


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


def _turns(constraint: dict[str, Any], gold: str, wrong: str) -> MultiTurnItem:
    return MultiTurnItem.model_validate(
        {
            "id": "turns-1",
            "turns": ["Rule.", "Yes.", "What is the capital of Italy?"],
            "constraint": constraint,
            "answers": ["Rome"],
            "gold_answer": gold,
            "distractors": [wrong],
        }
    )


STARTS = _turns({"kind": "starts_with", "text": "Arr,"}, "Arr, Rome.", "Rome.")
ENDS = _turns({"kind": "ends_with", "text": "Over."}, "Rome. Over.", "Rome.")
MENTIONS = _turns({"kind": "mentions", "text": "Dr Lee"}, "Rome, Dr Lee.", "Rome.")
AVOIDS = _turns({"kind": "avoids", "phrases": ["good", "Vatican City"]}, "Rome.", "Good Rome.")
AT_MOST = _turns({"kind": "at_most_words", "count": 2}, "Rome.", "It is Rome.")
UPPER = _turns({"kind": "letter_case", "case": "upper"}, "ROME.", "Rome.")
LOWER = _turns({"kind": "letter_case", "case": "lower"}, "rome.", "Rome.")
BULLETS = _turns({"kind": "bullets", "count": 2}, "- Rome\n- Milan", "- Rome")


@pytest.mark.parametrize(
    ("item", "text", "correct"),
    [
        (STARTS, "arr, it is Rome", True),
        (STARTS, "  Arr, Rome!", True),
        (STARTS, "Well, arr, Rome.", False),
        (STARTS, "Arr, Milan.", False),
        (ENDS, "It is Rome. over.\n", True),
        (ENDS, "Rome. Over", False),
        (ENDS, "Over. Rome.", False),
        (MENTIONS, "Dr Lee, it is Rome.", True),
        (MENTIONS, "Dr. Lee, it is Rome.", True),
        (MENTIONS, "Dr Leeds, it is Rome.", False),
        (MENTIONS, "Lee Dr, Rome", False),
        (AVOIDS, "Rome is a goodly town.", True),
        (AVOIDS, "Rome, around Vatican\nCity.", False),
        (AVOIDS, "It is GOOD old Rome.", False),
        (AVOIDS, "", False),
        (AT_MOST, "Rome, certainly!", True),
        (AT_MOST, "It's Rome", True),
        (AT_MOST, "It is Rome", False),
        (AT_MOST, "", False),
        (UPPER, "IT IS ROME, 100%.", True),
        (UPPER, "IT IS ROMe.", False),
        (UPPER, "123", False),
        (LOWER, "it is rome.", True),
        (LOWER, "It is rome.", False),
        (BULLETS, "* Rome\n\n* Naples", True),
        (BULLETS, "- Rome\n- Naples\n- Turin", False),
        (BULLETS, "Here:\n- Rome\n- Naples", False),
        (BULLETS, "-Rome\n-Naples", False),
        (BULLETS, "- Romeo\n- Naples", False),
    ],
)
def test_multi_turn(item: MultiTurnItem, text: str, correct: bool) -> None:
    assert _correct(item, text) is correct


CHOICE = ChoiceItem(id="choice-1", question="Who barks?", answer="A dog", distractors=["A cat", "Hot dog", "The horse"])


@pytest.mark.parametrize(
    ("text", "correct"),
    [
        ("A dog", True),
        ("a dog.", True),
        ("Dog", True),
        ("The dog barks.", True),
        ("The answer is: a dog", True),
        ("  **A dog**  ", True),
        ("\n\nA dog\nA cat", True),
        ('"Dog"', True),
        ("A dog; A dog", True),
        ("1. A dog", True),
        ("A\tdog", True),
        ("Every guard dog", True),
        ("A cat", False),
        ("A dog or a cat", False),
        ("A dog, not a horse", False),
        ("Hot dog", False),
        ("A hot dog", False),
        ("A dogfish", False),
        ("Dogs", False),
        ("I do not know.\nA dog", False),
        ("", False),
        ("\n", False),
        ("A", False),
    ],
)
def test_multiple_choice(text: str, correct: bool) -> None:
    assert _correct(CHOICE, text) is correct
