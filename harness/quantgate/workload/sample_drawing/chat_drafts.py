"""Chat: single questions, questions about a pasted text, and dialogues with recorded answers."""

from __future__ import annotations

from quantgate.workload.sample_drawing.draft import Draft, DraftTurn
from quantgate.workload.sample_drawing.seeded_draws import SeededDraws
from quantgate.workload.sample_drawing.texts import SampleTexts

PASTED_TEXTS = 9


def chat_drafts(texts: SampleTexts, draws: SeededDraws) -> list[Draft]:
    """Every authored chat once, and `PASTED_TEXTS` documents with a request about them."""
    single = [Draft("chat", (DraftTurn((("user", text),)),)) for text in texts.chats.single]
    requests = draws.shuffled(texts.chats.pasted)
    documents = draws.shuffled(texts.passages)
    pasted = [
        Draft("chat", (DraftTurn((("user", f"{request}\n\n{document.text}"),)),), may_wait=True)
        for request, document in zip(requests[:PASTED_TEXTS], documents, strict=False)
    ]
    dialogues = [Draft("chat", _turns(dialogue)) for dialogue in texts.chats.dialogues]
    return [*single, *pasted, *dialogues]


def _turns(dialogue: list[str]) -> tuple[DraftTurn, ...]:
    """One turn per user text, each with the whole recorded history before it."""
    roles = ("user", "assistant")
    messages = tuple((roles[position % 2], text) for position, text in enumerate(dialogue))
    return tuple(DraftTurn(messages[:end]) for end in range(1, len(messages) + 1, 2))
