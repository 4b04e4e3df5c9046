"""Questions over given documents: the answer and the document that holds it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from quantgate.quality.task_item import Answer, Checked, Task, TaskItem, Text
from quantgate.quality.text_matching import contains_any_phrase, words
from quantgate.traces.record import Message

DocumentId = Annotated[str, StringConstraints(pattern=r"^D[1-9]$")]

_INSTRUCTION = "Answer from the documents in a few words and name the document, like [D1]."
_TWIN_INSTRUCTION = "Answer from the documents in a few words."
# One worked example shows the form, without which small models never cite.
_EXAMPLE = (
    Message(
        "user",
        "The gate is locked at night. [D1]\nThe gate is green. [D2]\nThe gate is made of oak. [D3]\n"
        "Question: What colour is the gate?",
    ),
    Message("assistant", "Green [D2]"),
)
_CITATION = re.compile(r"\bD(\d+)\b")
_MOST_WORDS = 30


class RagItem(TaskItem):
    """`answers` are the accepted wordings, the gold first; `distractors` are wrong answers from the same world."""

    documents: Annotated[dict[DocumentId, Text], Field(min_length=2)]
    question: Text
    answers: Annotated[list[Text], Field(min_length=1)]
    document: DocumentId
    distractors: Annotated[list[Text], Field(min_length=1)]

    def contradiction(self) -> str | None:
        return None if self.document in self.documents else f"document {self.document} is cited but not given"

    def messages(self) -> tuple[Message, ...]:
        """Each document ends in its name, where a citation stands."""
        documents = "\n".join(f"{text} [{name}]" for name, text in self.documents.items())
        return (Message("system", _INSTRUCTION), *_EXAMPLE, self._question(documents))

    def twin_messages(self) -> tuple[Message, ...]:
        """Without names and citations: ranked with them, a small model prefers a document's place over its content."""
        return (Message("system", _TWIN_INSTRUCTION), self._question("\n".join(self.documents.values())))

    def _question(self, documents: str) -> Message:
        return Message("user", f"{documents}\nQuestion: {self.question}")

    @property
    def gold(self) -> str:
        return f"{self.twin_gold} [{self.document}]"

    @property
    def twin_gold(self) -> str:
        return self.answers[0]

    @property
    def wrong_answers(self) -> tuple[str, ...]:
        return tuple(self.distractors)

    def check(self, answer: Answer) -> Checked:
        """Correct: an accepted wording, in at most 30 words, and the right document named and no other.

        The limit on words keeps an answer that copies the documents from being right by accident.
        """
        cited = {f"D{number}" for number in _CITATION.findall(answer.text)}
        prose = _CITATION.sub(" ", answer.text)
        answered = contains_any_phrase(prose, self.answers) and len(words(prose)) <= _MOST_WORDS
        grounded = cited == {self.document}
        return Checked(answered and grounded, parts={"answer_correct": answered, "citation_correct": grounded})

    def accepts_option(self, option: str) -> bool:
        return super().accepts_option(f"{option} [{self.document}]")


class RagTask(Task):
    kind: Literal["rag"]
    items: Annotated[list[RagItem], Field(min_length=1)]
