"""Rows of the judgements table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import pyarrow as pa

from quantgate.judging.budget import Spending
from quantgate.judging.pair_verdicts import Order, PairKey
from quantgate.store.schemas import JUDGEMENTS

Row = dict[str, Any]
OVERBILLED = "overbilled"
"""`error_kind` of a call whose server states more tokens than the call was allowed to use."""


class Compared(Protocol):
    """What a row needs to know of the pair it is about."""

    @property
    def arm_id(self) -> str: ...

    @property
    def request_id(self) -> str: ...

    @property
    def pass_index(self) -> int: ...

    @property
    def cluster(self) -> str: ...


def identical_row(pair: Compared) -> Row:
    """Two answers that are the same: a tie that nobody was asked about."""
    return _row(pair, "baseline_first", "tie", judge="", source="identical")


def judge_row(
    pair: Compared, order: Order, choice: str, *, judge: str, used: Spending, reason: str = "",
    error_kind: str | None = None,
) -> Row:  # fmt: skip
    """One call of a judge; `used` is what it counted against the budget."""
    return _row(pair, order, choice, judge, "judge", reason) | {
        "error_kind": error_kind,
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
    }


def human_row(pair: Compared, order: Order, choice: str, *, reviewer: str, note: str = "") -> Row:
    """What a person chose; `open` where a person was asked and has not chosen."""
    return _row(pair, order, choice, reviewer, "human", note)


def key_of(row: Row) -> PairKey:
    return row["arm_id"], row["request_id"], row["pass_index"]


def table_of(rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=JUDGEMENTS)


def spending(rows: Iterable[Row]) -> Spending:
    """What the judge's calls among the rows have used."""
    total = Spending()
    for row in rows:
        if row["source"] == "judge":
            total += Spending(1, row["prompt_tokens"], row["completion_tokens"])
    return total


def lasting_spending(rows: Iterable[Row]) -> Spending:
    """What later commands find charged: a call that no model answered counts in the command that made it alone."""
    return spending(row for row in rows if row["choice"] != "failed" or _tokens(row))


def _tokens(row: Row) -> int:
    return int(row["prompt_tokens"] + row["completion_tokens"])


def _row(pair: Compared, order: Order, choice: str, judge: str, source: str, reason: str = "") -> Row:
    return {
        "arm_id": pair.arm_id,
        "request_id": pair.request_id,
        "pass_index": pair.pass_index,
        "cluster_id": pair.cluster,
        "order": order,
        "choice": choice,
        "judge": judge,
        "source": source,
        "error_kind": None,
        "reason": reason or None,
        "prompt_tokens": 0,
        "completion_tokens": 0,
    }
