"""Answers in Python: what parses, what defines the function, and what only looks like it."""

from __future__ import annotations

import pytest

from quantgate.quality.task_item import Answer, TaskItem
from quantgate.quality.tasks.code import CodeItem


def _correct(item: TaskItem, text: str, *, truncated: bool = False) -> bool:
    return item.check(Answer(text, truncated=truncated)).correct


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
