"""Puts drafts, arrivals and lengths together into the rows of a sample file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quantgate.workload.sample_drawing.arrivals import SPAN_S, on_off_arrivals, poisson_arrivals
from quantgate.workload.sample_drawing.chat_drafts import chat_drafts
from quantgate.workload.sample_drawing.code_drafts import code_drafts
from quantgate.workload.sample_drawing.draft import Draft, Kind
from quantgate.workload.sample_drawing.output_lengths import output_lengths
from quantgate.workload.sample_drawing.rag_drafts import rag_drafts
from quantgate.workload.sample_drawing.seeded_draws import SeededDraws
from quantgate.workload.sample_drawing.texts import SampleTexts, read_texts
from quantgate.workload.sample_drawing.tool_drafts import tool_drafts

SEED = 20240607
BATCH_SHARE_OF_WORK_THAT_MAY_WAIT = 0.70

THINK_MEDIAN_S = 1.5
THINK_SIGMA = 0.6
THINK_LONGEST_S = 5.0
RECORDED_ANSWER_S = 1.0


@dataclass(frozen=True, slots=True)
class _Timed:
    """One request with its place in time; `session` tells sessions apart, None for single requests."""

    offset_s: float
    think_s: float
    draft: Draft
    turn: int
    output_tokens: int
    slo_class: str
    session: str | None


def draw_quick(texts_folder: Path, seed: int = SEED) -> str:
    """The text of quick.jsonl: one request a line, in order of time."""
    texts = read_texts(texts_folder)
    timed = [*_conversational(texts, seed), *_bursty(texts, seed)]
    timed.sort(key=lambda request: (request.offset_s, request.turn))
    sessions: dict[str, str] = {}
    start_s = timed[0].offset_s
    rows = [_row(number, request, start_s, sessions) for number, request in enumerate(timed, start=1)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _conversational(texts: SampleTexts, seed: int) -> list[_Timed]:
    """Chat and RAG: people, who arrive by a Poisson process with a changing rate."""
    draws = SeededDraws(seed, "conversational")
    drafts = [
        *chat_drafts(texts, SeededDraws(seed, "chat texts")),
        *rag_drafts(texts, SeededDraws(seed, "rag texts")),
    ]
    return _schedule("conversational", draws.shuffled(drafts), poisson_arrivals(len(drafts), draws), draws)


def _bursty(texts: SampleTexts, seed: int) -> list[_Timed]:
    """Code and tools: programs, which send in bursts."""
    draws = SeededDraws(seed, "bursty")
    drafts = [
        *code_drafts(texts, SeededDraws(seed, "code texts")),
        *tool_drafts(texts, SeededDraws(seed, "tool texts")),
    ]
    return _schedule("bursty", draws.shuffled(drafts), on_off_arrivals(len(drafts), draws), draws)


def _schedule(stream: str, drafts: list[Draft], arrivals_s: list[float], draws: SeededDraws) -> list[_Timed]:
    lengths = _lengths_by_kind(drafts, draws)
    timed = []
    for position, (draft, arrival_s) in enumerate(zip(drafts, arrivals_s, strict=True)):
        waits = draft.may_wait and draws.uniform() < BATCH_SHARE_OF_WORK_THAT_MAY_WAIT
        thinks_s = [0.0, *(_think_time_s(draws) for _ in draft.turns[1:])]
        duration_s = sum(RECORDED_ANSWER_S + think_s for think_s in thinks_s[1:])
        if arrival_s + duration_s > SPAN_S:
            # A session that would outlast the sample starts earlier, at a time drawn like the others.
            (arrival_s,) = poisson_arrivals(1, draws, until_s=SPAN_S - duration_s)
        offset_s = arrival_s
        for turn, think_s in enumerate(thinks_s, start=1):
            offset_s += think_s + (RECORDED_ANSWER_S if turn > 1 else 0.0)
            timed.append(
                _Timed(
                    offset_s=offset_s,
                    think_s=think_s,
                    draft=draft,
                    turn=turn,
                    output_tokens=lengths[draft.kind].pop(),
                    slo_class="batch" if waits else "interactive",
                    session=f"{stream} {position}" if len(draft.turns) > 1 else None,
                )
            )
    return timed


def _think_time_s(draws: SeededDraws) -> float:
    return min(THINK_LONGEST_S, draws.lognormal(THINK_MEDIAN_S, THINK_SIGMA))


def _lengths_by_kind(drafts: list[Draft], draws: SeededDraws) -> dict[Kind, list[int]]:
    counts: dict[Kind, int] = {}
    for draft in drafts:
        counts[draft.kind] = counts.get(draft.kind, 0) + len(draft.turns)
    return {kind: output_lengths(kind, count, draws) for kind, count in counts.items()}


def _row(number: int, request: _Timed, start_s: float, sessions: dict[str, str]) -> dict[str, Any]:
    turn = request.draft.turns[request.turn - 1]
    row: dict[str, Any] = {
        "id": f"quick-{number:03d}",
        "offset": round(request.offset_s - start_s, 3),
        "class": request.slo_class,
        "tags": [request.draft.kind],
        "max_tokens": request.output_tokens,
    }
    if request.session is not None:
        row["session"] = sessions.setdefault(request.session, f"session-{len(sessions) + 1:02d}")
        row["turn"] = request.turn
    if request.turn > 1:
        row["think_time"] = round(request.think_s, 3)
    row["messages"] = [{"role": role, "content": content} for role, content in turn.messages]
    if turn.checker is not None:
        row["checker"] = turn.checker
    return row
