"""Answers in prose: tables of texts that look right or wrong and are the other."""

from __future__ import annotations

from typing import Any

import pytest

from quantgate.quality.task_item import Answer, TaskItem
from quantgate.quality.tasks.multi_turn import MultiTurnItem
from quantgate.quality.tasks.multiple_choice import ChoiceItem
from quantgate.quality.tasks.rag import RagItem


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
