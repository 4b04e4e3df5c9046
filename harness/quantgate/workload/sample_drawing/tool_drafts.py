"""Tools: a wish that one of a few tools serves, or none; some go on with the tool's result."""

from __future__ import annotations

import json

from quantgate.workload.sample_drawing.draft import Draft, DraftTurn
from quantgate.workload.sample_drawing.seeded_draws import SeededDraws
from quantgate.workload.sample_drawing.texts import SampleTexts, ToolSituation, ToolStyle

SINGLE_CALLS = 40


def tool_drafts(texts: SampleTexts, draws: SeededDraws) -> list[Draft]:
    """All situations that have a second turn, and `SINGLE_CALLS` of the others."""
    situations = texts.tools.situations
    sessions = [situation for situation in situations if situation.then is not None]
    single = draws.shuffled([situation for situation in situations if situation.then is None])[:SINGLE_CALLS]
    return [_draft(texts, situation, draws.choice(texts.styles.tools)) for situation in [*sessions, *single]]


def _draft(texts: SampleTexts, situation: ToolSituation, style: ToolStyle) -> Draft:
    tools = "\n".join(style.line.format(signature=signature) for signature in texts.tools.sets[situation.set])
    # The style holds JSON braces, which `format` would take for fields.
    system = style.system.replace("{tools}", tools)
    call = {"tool": situation.tool, "arguments": situation.arguments}
    opening = DraftTurn((("system", system), ("user", situation.user)), {"kind": "tool_call", **call})
    if situation.then is None:
        return Draft("tools", (opening,))
    history = (
        *opening.messages,
        ("assistant", json.dumps(call)),
        ("user", f"Result: {situation.result}\n{situation.then} Answer in words."),
    )
    checker = {"kind": "contains", "texts": [situation.answer], "match": "all"}
    return Draft("tools", (opening, DraftTurn(history, checker)))
