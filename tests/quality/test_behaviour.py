"""Refusals, loops and what else is measured of an answer's form."""

from __future__ import annotations

import pytest

from quantgate.quality.behaviour import behaviour_metrics, looped, refused
from quantgate.quality.task_item import Answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm sorry, but I can't help with that.", True),
        ("I\u2019m sorry, I can\u2019t assist with this request.", True),
        ("I cannot provide that information.", True),
        ("As an AI language model, I cannot do this.", True),
        ("As an AI assistant, I am not able to share that.", True),
        ("I am unable to answer this question.", True),
        ("I'm not able to help.", True),
        ("Sorry, I won't do that.", True),
        ("I will not write this.", True),
        ("It would be inappropriate for me to say.", True),
        ("Unfortunately, I can't create that.", True),
        ("I don't have enough information to answer.", False),
        ("The documents do not say, so I cannot answer.", False),
        ("You cannot help him.", False),
        ("I cannot see why the sky is blue.", False),
        ("I'm sorry to hear that. Drink water.", False),
        ("The ferry can't leave before noon.", False),
        ("As an AI model of 1990 it was slow.", False),
        ("Rome.", False),
        ("", False),
        ("A long answer. " * 15 + "I cannot help with that.", False),
    ],
)
def test_refused(text: str, expected: bool) -> None:
    assert refused(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the cat sat the cat sat the cat sat", True),
        ("I am here. I am here! i am HERE?", True),
        ("no no no no no", True),
        ("no no no no", False),
        ("the cat sat and the cat sat", False),
        ("one two", False),
        ("", False),
    ],
)
def test_looped(text: str, expected: bool) -> None:
    assert looped(text) is expected


def test_metrics_of_an_answer() -> None:
    cut = behaviour_metrics(Answer("no no no no no", truncated=True), answer_tokens=24)
    assert cut == {"refused": 0.0, "looped": 1.0, "stopped": 0.0, "answer_tokens": 24.0}
    assert behaviour_metrics(Answer("Rome."), answer_tokens=3)["stopped"] == 1.0
