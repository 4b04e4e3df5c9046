"""Picks the pairs that people should review, and hides which answer is whose."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from random import Random

from quantgate.judging.answer_pairs import AnswerPair, answer_pairs
from quantgate.judging.drawing import stratified_order
from quantgate.judging.live_history import later_turns
from quantgate.judging.pair_verdicts import ORDERS, JudgedPair, judged_pairs
from quantgate.judging.review.priority import by_priority
from quantgate.judging.review.queue_file import QueueItem, ReviewQueue
from quantgate.judging.review.review_key import KeyEntry, ReviewKey, key_entry
from quantgate.judging.rows import Row, human_row, identical_row
from quantgate.store.run_folder import LoadedRun
from quantgate_engine.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ExportedQueue:
    """`queue` goes to the reviewers, `key` stays in the run's folder, and `rows` join the judgements table.

    later_turns: requests that are left out because the arms were not asked the same.
    """

    queue: ReviewQueue
    key: ReviewKey
    rows: list[Row]
    later_turns: int


def export_queue(run: LoadedRun, items: int, seed: int, earlier: ReviewKey | None) -> ExportedQueue:
    """At most `items` pairs of baseline and candidate that no person has judged yet, most urgent first.

    After a judge, they come from the sample that it was given. Without one, they are a stratified sample of their own,
    and the identical pairs met on the way belong to it as ties; both are noted as rows, so that a queue that is half
    filled is not taken for a whole sample. `earlier`: the key of earlier exports, which the new one holds too.
    Raises ConfigurationError where nothing is left to review.
    """
    judged = {pair.key: pair for pair in judged_pairs(run.judgements)}
    candidates = {arm.arm_id for arm in run.manifest.arms if arm.role == "candidate"}
    by_item = answer_pairs(run)
    order = stratified_order(sorted(by_item), lambda item: by_item[item][0].stratum, seed)
    in_order = [pair for item in order for pair in by_item[item] if pair.arm_id in candidates]
    if any(pair.by_order != (None, None) or pair.source == "judge" for pair in judged.values()):
        rows: list[Row] = []
        chosen = by_priority([pair for pair in in_order if _awaits_review(pair, judged)], judged)[:items]
    else:
        drawn, rows = _draw(in_order, items, judged)
        chosen = by_priority(drawn, judged)
    if not chosen:
        raise ConfigurationError(
            f"Run {run.manifest.run_id} has no pair of differing answers left to review; judge the run again with what "
            "is there: quantgate gate RUN."
        )
    queue, key = _blinded(run.manifest.run_id, chosen, seed, earlier)
    return ExportedQueue(queue, key, rows, len(later_turns(run)))


def _awaits_review(pair: AnswerPair, judged: dict[tuple[str, str, int], JudgedPair]) -> bool:
    known = judged.get(pair.key)
    return known is not None and not pair.identical and not _reviewed(known)


def _reviewed(judged: JudgedPair) -> bool:
    return judged.source == "human" and judged.preferred is not None


def _draw(
    in_order: list[AnswerPair], items: int, judged: dict[tuple[str, str, int], JudgedPair]
) -> tuple[list[AnswerPair], list[Row]]:
    """The next differing pairs in the drawing's order that nobody has judged, and rows for the ties met on the way."""
    drawn: list[AnswerPair] = []
    rows: list[Row] = []
    for pair in in_order:
        known = judged.get(pair.key)
        if pair.identical:
            rows += [] if known else [identical_row(pair)]
        elif known is None or not _reviewed(known):
            if len(drawn) == items:
                break
            drawn.append(pair)
            rows += [] if known else [human_row(pair, "baseline_first", "open", reviewer="")]
    return drawn, rows


def _blinded(
    run_id: str, pairs: list[AnswerPair], seed: int, earlier: ReviewKey | None
) -> tuple[ReviewQueue, ReviewKey]:
    random = Random(seed)
    entries: dict[str, KeyEntry] = dict(earlier.entries) if earlier else {}
    items = []
    for pair in pairs:
        shown_as = random.choice(ORDERS)
        name = _item_id(run_id, pair)
        # What was exported before keeps its order: the reviewer may have that file open.
        entry = entries.setdefault(name, key_entry(pair, shown_as))
        answer_1, answer_2 = pair.shown(entry.order)
        items.append(QueueItem(id=name, request=pair.request, answer_1=answer_1, answer_2=answer_2))
    return ReviewQueue(run_id=run_id, items=items), ReviewKey(run_id=run_id, entries=entries)


def _item_id(run_id: str, pair: AnswerPair) -> str:
    """Tells nothing about the arm to a reader, and is the same at the next export."""
    return hashlib.sha256("\0".join([run_id, *map(str, pair.key)]).encode()).hexdigest()[:12]
