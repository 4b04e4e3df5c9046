"""RAG: a question over one to several documents of which one holds the answer."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.workload.sample_drawing.draft import Draft, DraftTurn
from quantgate.workload.sample_drawing.seeded_draws import SeededDraws
from quantgate.workload.sample_drawing.texts import Question, RagStyle, SampleTexts

SESSIONS = 9
SINGLE_QUESTIONS = 85
MEDIAN_DOCUMENT_WORDS = 82.0
SIGMA_DOCUMENT_WORDS = 0.6
LARGEST_DOCUMENT_WORDS = 290.0

# Three digits for every document, so that no citation is the beginning of another.
FIRST_DOCUMENT_NUMBER = 101


def rag_drafts(texts: SampleTexts, draws: SeededDraws) -> list[Draft]:
    """`SESSIONS` two-turn sessions on one set of documents, and single questions that cover every other passage."""
    order = draws.shuffled(range(len(texts.passages)))
    in_sessions, alone = order[:SESSIONS], order[SESSIONS:]
    questions = [*((number, 0) for number in alone), *((number, 1) for number in draws.shuffled(alone))]
    singles = questions[:SINGLE_QUESTIONS]
    sizes = draws.stratified_lognormal(len(singles) + SESSIONS, MEDIAN_DOCUMENT_WORDS, SIGMA_DOCUMENT_WORDS)
    drafts = []
    for (number, question), size in zip(singles, sizes[SESSIONS:], strict=True):
        shown = _documents(texts, number, size, draws)
        turn = _turn(texts, shown, number, texts.passages[number].questions[question], draws.choice(texts.styles.rag))
        drafts.append(Draft("rag", (turn,), may_wait=True))
    for number, size in zip(in_sessions, sizes[:SESSIONS], strict=True):
        shown = _documents(texts, number, size, draws)
        first, second = texts.passages[number].questions
        opening = _turn(texts, shown, number, first, draws.choice(texts.styles.rag))
        history = (*opening.messages, ("assistant", f"{first.answer} [D{_label(number)}]"), ("user", second.ask))
        drafts.append(Draft("rag", (opening, DraftTurn(history, _checker(second, number)))))
    return drafts


def _documents(texts: SampleTexts, wanted: int, size: float, draws: SeededDraws) -> list[int]:
    """The wanted passage among others, shuffled, of about `size` words together."""
    chosen = [wanted]
    words = texts.passages[wanted].words
    for other in draws.shuffled(range(len(texts.passages))):
        if other != wanted and words + texts.passages[other].words <= min(size, LARGEST_DOCUMENT_WORDS):
            chosen.append(other)
            words += texts.passages[other].words
    return draws.shuffled(chosen)


def _turn(texts: SampleTexts, shown: Sequence[int], wanted: int, question: Question, style: RagStyle) -> DraftTurn:
    documents = "\n".join(
        style.document.format(number=_label(number), text=texts.passages[number].text) for number in shown
    )
    user = style.user.format(documents=documents, question=question.ask)
    return DraftTurn((("system", style.system), ("user", user)), _checker(question, wanted))


def _checker(question: Question, number: int) -> dict[str, object]:
    return {"kind": "contains", "texts": [question.answer, f"D{_label(number)}"], "match": "all"}


def _label(number: int) -> int:
    return FIRST_DOCUMENT_NUMBER + number
