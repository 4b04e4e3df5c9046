"""From the rows of the judgements table to one verdict for each pair of answers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quantgate.stats.clusters import cluster_numbers

Order = Literal["baseline_first", "baseline_second"]
"""Which of the two answers was shown as answer 1 is the baseline's, or the other arm's."""

Preference = Literal["baseline", "other", "tie"]
Source = Literal["judge", "human", "identical"]
PairKey = tuple[str, str, int]
"""(arm compared with the baseline, request, pass)"""
ItemKey = tuple[str, int]
"""(request, pass)"""

ORDERS: tuple[Order, Order] = ("baseline_first", "baseline_second")
_SHOWN_BETTER: dict[tuple[str, str], Preference] = {
    ("baseline_first", "1"): "baseline",
    ("baseline_first", "2"): "other",
    ("baseline_second", "1"): "other",
    ("baseline_second", "2"): "baseline",
    ("baseline_first", "tie"): "tie",
    ("baseline_second", "tie"): "tie",
}
VERDICTS = frozenset(choice for _, choice in _SHOWN_BETTER)
"""Choices that say which answer is better, or that none is."""


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """Two answers to one request and which of them is better.

    preferred: None where nobody has decided (failed calls, answers that could not be read, an open review). by_order:
    what the judge preferred with the baseline's answer shown first and second; None for an order without an answer.
    reasons: why, with the order that numbers the answers in it.
    """

    arm_id: str
    request_id: str
    pass_index: int
    cluster: str
    preferred: Preference | None
    source: Source
    by_order: tuple[Preference | None, Preference | None]
    reasons: tuple[tuple[Order, str], ...]

    @property
    def key(self) -> PairKey:
        return self.arm_id, self.request_id, self.pass_index

    @property
    def orders_disagree(self) -> bool:
        """The judge answered both orders, and differently: the pair counts as a tie."""
        first, second = self.by_order
        return first is not None and second is not None and first != second


def judged_pairs(judgements: pa.Table) -> list[JudgedPair]:
    """The pairs of a judgements table, sorted by arm, request and pass.

    A person's answer stands above the judge's. The judge prefers an answer where it prefers it in both orders; where
    the orders differ, position decided and the pair is a tie.
    """
    rows: dict[PairKey, list[dict[str, Any]]] = defaultdict(list)
    for row in judgements.to_pylist():
        rows[row["arm_id"], row["request_id"], row["pass_index"]].append(row)
    return [_pair(key, rows[key]) for key in sorted(rows)]


def pairs_of_arm(pairs: list[JudgedPair], arm_id: str) -> list[JudgedPair]:
    return [pair for pair in pairs if pair.arm_id == arm_id]


def clusters_of(pairs: list[JudgedPair]) -> NDArray[np.int64]:
    """Cluster number of each pair, [n]: turns of one session, and repetitions of one request, depend on each other."""
    return cluster_numbers([pair.cluster for pair in pairs])


def _pair(key: PairKey, rows: list[dict[str, Any]]) -> JudgedPair:
    of_judge = [row for row in rows if row["source"] == "judge"]
    found = {row["order"]: preference(row) for row in of_judge if preference(row)}
    by_order = (found.get("baseline_first"), found.get("baseline_second"))
    human = [row for row in rows if row["source"] == "human" and preference(row)]
    preferred: Preference | None
    source: Source
    if human:
        preferred, source = preference(human[-1]), "human"
    elif of_judge:
        preferred, source = _over_orders(by_order), "judge"
    elif any(row["source"] == "identical" for row in rows):
        preferred, source = "tie", "identical"
    else:
        preferred, source = None, "human"
    return JudgedPair(
        *key,
        cluster=rows[0]["cluster_id"],
        preferred=preferred,
        source=source,
        by_order=by_order,
        reasons=tuple((row["order"], row["reason"]) for row in rows if row["reason"]),
    )


def preference(row: dict[str, Any]) -> Preference | None:
    """Which arm's answer a row prefers; None where it holds no choice."""
    return _SHOWN_BETTER.get((row["order"], row["choice"]))


def _over_orders(by_order: tuple[Preference | None, Preference | None]) -> Preference | None:
    first, second = by_order
    if first is None or second is None:
        return None
    return first if first == second else "tie"
