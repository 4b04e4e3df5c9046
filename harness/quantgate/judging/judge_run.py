"""Judging of a stored run: what is asked for is prepared and priced first, then carried out and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quantgate.judging.answer_pairs import answer_pairs
from quantgate.judging.budget import Budget, Spending
from quantgate.judging.judge_client import JudgeClient
from quantgate.judging.judging_session import JudgingSession, OnPair, OnWait, SessionOutcome
from quantgate.judging.live_history import later_turns
from quantgate.judging.plan import JudgingPlan, drawn_pairs, plan_judging
from quantgate.judging.rows import Row, lasting_spending, table_of
from quantgate.store.run_folder import LoadedRun, RunFolder
from quantgate_engine.errors import ConfigurationError

CONCURRENCY = 4


@dataclass(frozen=True, slots=True)
class JudgingOrder:
    """What the user asks for. The budget covers this judge's calls on this run, answered ones of earlier commands too.

    items: requests to draw; max_tokens: limit of one reply of the judge. replace: drop what another judge found.
    """

    model: str
    items: int
    budget_requests: int
    budget_tokens: int
    max_tokens: int
    seed: int
    replace: bool = False


@dataclass(frozen=True, slots=True)
class PreparedJudging:
    """kept: rows of the table that stay. spent_before: what they have used of the budget.

    later_turns: requests that are left out because the arms were not asked the same.
    """

    order: JudgingOrder
    plan: JudgingPlan
    kept: tuple[Row, ...]
    spent_before: Spending
    later_turns: int

    @property
    def covered_for_certain(self) -> bool:
        """Whether the budget covers every call of the plan, even if each uses all that it may."""
        most = self.spent_before + self.plan.most
        return most.requests <= self.order.budget_requests and most.tokens <= self.order.budget_tokens


def prepare(run: LoadedRun, order: JudgingOrder) -> PreparedJudging:
    """Makes no call. Raises ConfigurationError where the run has nothing to judge or another judge was there."""
    pairs = drawn_pairs(answer_pairs(run), order.items, order.seed)
    kept = _kept(run, order)
    plan = plan_judging(pairs, kept, order.max_tokens)
    return PreparedJudging(order, plan, kept, lasting_spending(kept), len(later_turns(run)))


async def judge_pairs(
    prepared: PreparedJudging,
    client: JudgeClient,
    folder: RunFolder,
    on_pair: OnPair,
    on_wait: OnWait = lambda _: None,
) -> SessionOutcome:
    """Carries the plan out; the table in `folder` holds every call that was made, whenever it ends."""
    order = prepared.order
    budget = Budget(order.budget_requests, order.budget_tokens, prepared.spent_before)

    def write(rows: Sequence[Row]) -> None:
        folder.write_table("judgements", table_of([*prepared.kept, *rows]))

    session = JudgingSession(client, budget, concurrency=CONCURRENCY, write=write, on_pair=on_pair, on_wait=on_wait)
    return await session.run(prepared.plan)


def _kept(run: LoadedRun, order: JudgingOrder) -> tuple[Row, ...]:
    # A call that no other judge answered, under a mistyped name say, binds the run to nothing.
    rows = [row for row in run.judgements.to_pylist() if row["choice"] != "failed" or row["judge"] == order.model]
    others = sorted({row["judge"] for row in rows if row["source"] == "judge"} - {order.model})
    if others and not order.replace:
        raise ConfigurationError(
            f"Run {run.manifest.run_id} was judged by {', '.join(others)} already; judge on with the same model, or "
            "add --replace to drop those judgements (people's reviews stay)."
        )
    if not others:
        return tuple(rows)
    return tuple(row for row in rows if row["source"] == "human")
