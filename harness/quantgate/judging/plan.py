"""What a judging session is going to do and what that will cost, known before the first call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quantgate.judging.answer_pairs import AnswerPair
from quantgate.judging.budget import Spending
from quantgate.judging.cost import call_limit, likely_cost
from quantgate.judging.drawing import stratified_order
from quantgate.judging.instructions import judge_messages
from quantgate.judging.pair_verdicts import ORDERS, ItemKey, Order
from quantgate.judging.rows import Row, key_of


@dataclass(frozen=True, slots=True)
class PlannedPair:
    """A pair of the sample. orders: those that the judge is still to see. new_tie: identical, and not yet on record."""

    pair: AnswerPair
    orders: tuple[Order, ...]
    new_tie: bool

    @property
    def to_do(self) -> bool:
        return bool(self.orders) or self.new_tie


@dataclass(frozen=True, slots=True)
class JudgingPlan:
    """pairs: in the order in which they are worked off; each prefix is a stratified sample.

    items: requests that were drawn. likely and most: what all the calls will use about, and what they cannot exceed.
    """

    pairs: tuple[PlannedPair, ...]
    items: int
    likely: Spending
    most: Spending

    @property
    def identical(self) -> int:
        return sum(planned.pair.identical for planned in self.pairs)

    @property
    def to_ask(self) -> int:
        return sum(bool(planned.orders) for planned in self.pairs)

    @property
    def judged_before(self) -> int:
        return len(self.pairs) - self.identical - self.to_ask


def drawn_pairs(by_item: dict[ItemKey, list[AnswerPair]], items: int, seed: int) -> list[AnswerPair]:
    """The pairs of `items` requests, stratified by SLO class and tags; every arm is compared on the same requests."""
    order = stratified_order(sorted(by_item), lambda item: by_item[item][0].stratum, seed)
    return [pair for item in order[:items] for pair in by_item[item]]


def plan_judging(pairs: Sequence[AnswerPair], rows: Sequence[Row], max_tokens: int) -> JudgingPlan:
    """`rows`: what is on record; an order that the judge has answered, in whatever way, is not asked again."""
    answered = {(key_of(row), row["order"]) for row in rows if row["source"] == "judge" and row["choice"] != "failed"}
    ties = {key_of(row) for row in rows if row["source"] == "identical"}
    planned = tuple(
        PlannedPair(
            pair,
            () if pair.identical else tuple(order for order in ORDERS if (pair.key, order) not in answered),
            new_tie=pair.identical and pair.key not in ties,
        )
        for pair in pairs
    )
    likely, most = Spending(), Spending()
    for asked in planned:
        for order in asked.orders:
            messages = judge_messages(asked.pair, order)
            likely += likely_cost(messages, max_tokens)
            most += call_limit(messages, max_tokens).as_spent()
    return JudgingPlan(planned, len({pair.key[1:] for pair in pairs}), likely, most)
