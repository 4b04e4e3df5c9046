"""Questions over given documents: the answer and the document that holds it."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from quantgate.quality.task_item import Answer, Checked, StrictModel, Task, TaskItem, Text
from quantgate.quality.text_matching import contains_any_phrase, words
from quantgate.traces.record import Message

DocumentId = Annotated[str, StringConstraints(pattern=r"^D[1-9]$")]

_INSTRUCTION = "Answer from the documents in a few words and cite the document, like [D1]."
_CITATION = re.compile(r"\bD(\d+)\b")
_MOST_WORDS = 30


class CitedAnswer(StrictModel):
    """An answer and the document it is claimed to come from."""

    answer: Text
    document: DocumentId

    @property
    def text(self) -> str:
        return f"{self.answer} [{self.document}]"


class RagItem(TaskItem):
    """`answers` are the accepted wordings; the first one is the gold."""

    documents: Annotated[dict[DocumentId, Text], Field(min_length=2)]
    question: Text
    answers: Annotated[list[Text], Field(min_length=1)]
    document: DocumentId
    distractors: Annotated[list[CitedAnswer], Field(min_length=1)]

    @model_validator(mode="after")
    def _documents_exist(self) -> Self:
        for cited in (self.document, *(wrong.document for wrong in self.distractors)):
            if cited not in self.documents:
                raise ValueError(f"item {self.id}: document {cited} is cited but not given")
        return self

    def messages(self) -> tuple[Message, ...]:
        documents = "\n".join(f"[{name}] {text}" for name, text in self.documents.items())
        return (Message("system", _INSTRUCTION), Message("user", f"{documents}\nQuestion: {self.question}"))

    @property
    def gold(self) -> str:
        return CitedAnswer(answer=self.answers[0], document=self.document).text

    @property
    def wrong_answers(self) -> tuple[str, ...]:
        return tuple(wrong.text for wrong in self.distractors)

    def check(self, answer: Answer) -> Checked:
        """Correct: an accepted wording, in at most 30 words, and the right document cited and no other.

        The limit on words keeps an answer that copies the documents from being right by accident.
        """
        cited = {f"D{number}" for number in _CITATION.findall(answer.text)}
        prose = _CITATION.sub(" ", answer.text)
        answered = contains_any_phrase(prose, self.answers) and len(words(prose)) <= _MOST_WORDS
        grounded = cited == {self.document}
        return Checked(answered and grounded, parts={"answer_correct": answered, "citation_correct": grounded})


class RagTask(Task):
    kind: Literal["rag"]
    items: Annotated[list[RagItem], Field(min_length=1)]
