"""Has the drawn pairs judged: both orders each, bounded concurrency, never beyond the budget, every call on record."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from quantgate.judging.answer_pairs import AnswerPair
from quantgate.judging.budget import Budget, CallLimit, Reservation, Spending
from quantgate.judging.cost import call_limit
from quantgate.judging.instructions import judge_messages
from quantgate.judging.judge_client import JudgeAnswer, JudgeClient
from quantgate.judging.judge_reply import read_reply
from quantgate.judging.pair_verdicts import Order
from quantgate.judging.patience import WAITS_S, asks_for_too_long, wait_words, words_of, worth_another_call
from quantgate.judging.plan import JudgingPlan, PlannedPair
from quantgate.judging.rows import OVERBILLED, Row, identical_row, judge_row, key_of
from quantgate.targets.openai.endpoint import EndpointError
from quantgate.targets.openai.surrogates import mended

_UNCHARGED = frozenset({"connect", "status_4xx", "status_429", "status_5xx", "malformed_event"})
"""Failures of a call that no model answered; any other broke off, and may have cost all that it was allowed."""
_HOPELESS = frozenset({401, 403, 404})
"""Statuses that the next call would meet again: a wrong key, a wrong address or model."""
_FAILURES_IN_A_ROW = 5
_CALLS_BETWEEN_WRITES = 20

WriteRows = Callable[[Sequence[Row]], None]
OnPair = Callable[[int], None]
OnWait = Callable[[str], None]


@dataclass(slots=True)
class SessionOutcome:
    """rows: all that this session adds to the table. left: pairs that were not begun.

    stopped: why, where it ended before its plan did. hopeless: the calls fail, and so would further ones. failures:
    failed calls by kind. overrun_tokens: what the judge's server billed beyond the budget.
    """

    rows: list[Row] = field(default_factory=list)
    left: int = 0
    stopped: str | None = None
    hopeless: bool = False
    overrun_tokens: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    last_error: str = ""


class JudgingSession:
    """One pass over a plan.

    Pairs are begun in the plan's order, so that what a budget cuts off is the end of a stratified sample and not, say,
    its long answers.
    """

    def __init__(
        self, client: JudgeClient, budget: Budget, *, concurrency: int, write: WriteRows, on_pair: OnPair,
        on_wait: OnWait = lambda _: None,
    ) -> None:  # fmt: skip
        """`write` is given all rows so far, now and then and at the end, also when interrupted.

        `on_pair` is called with the number of pairs that are done, `on_wait` with what is waited for.
        """
        self._client = client
        self._budget = budget
        self._concurrency = concurrency
        self._write = write
        self._on_pair = on_pair
        self._on_wait = on_wait
        self._waiting = 0
        self._in_flight: set[asyncio.Task[None]] = set()
        self._failed_in_a_row = 0
        self._done = 0
        self._unwritten_calls = 0
        self.outcome = SessionOutcome()

    async def run(self, plan: JudgingPlan) -> SessionOutcome:
        """Raises nothing for failed calls: they are rows, and too many in a row end the session."""
        try:
            async with asyncio.TaskGroup() as group:
                for planned in plan.pairs:
                    if not await self._begin(planned, group):
                        break
        finally:
            begun = {key_of(row) for row in self.outcome.rows}
            self.outcome.left = sum(planned.to_do and planned.pair.key not in begun for planned in plan.pairs)
            self.outcome.overrun_tokens = self._budget.overrun_tokens
            self._write(self.outcome.rows)
        return self.outcome

    async def _begin(self, planned: PlannedPair, group: asyncio.TaskGroup) -> bool:
        """Starts on one pair as soon as there is room for it; False where the session ends before it."""
        reservations: list[Reservation] | None = []
        if planned.orders:
            while len(self._in_flight) >= self._concurrency:
                await self._next_to_end()
            reservations = await self._reserve([self._limit(planned.pair, order) for order in planned.orders])
        if reservations is None or self.outcome.stopped is not None:
            for reservation in reservations or []:
                reservation.release()
            return False
        if planned.orders:
            task = group.create_task(self._judge(planned, reservations))
            self._in_flight.add(task)
            task.add_done_callback(self._in_flight.discard)
            return True
        if planned.new_tie:
            self.outcome.rows.append(identical_row(planned.pair))
        self._advance()
        return True

    async def _reserve(self, limits: list[CallLimit]) -> list[Reservation] | None:
        """Waits for calls in flight, which give back what they did not use, before it says that the budget is spent."""
        while (reserved := self._budget.reserve(limits)) is None and self._in_flight:
            await self._next_to_end()
        if reserved is None:
            self._stop("the budget does not cover the next pair")
        return reserved

    async def _next_to_end(self) -> None:
        await asyncio.wait(self._in_flight, return_when=asyncio.FIRST_COMPLETED)

    async def _judge(self, planned: PlannedPair, reservations: list[Reservation]) -> None:
        try:
            for order, reservation in zip(planned.orders, reservations, strict=True):
                if not await self._ask_until_answered(planned.pair, order, reservation):
                    # Half a pair is no verdict; its other order would be paid for nothing.
                    break
        finally:
            for reservation in reservations:
                reservation.release()
        self._advance()

    async def _ask_until_answered(self, pair: AnswerPair, order: Order, reservation: Reservation) -> bool:
        """Calls again, within the budget, where waiting may help. False where no answer came."""
        for wait_s in (*WAITS_S, None):
            if not self._budget.covers_reserved:
                self._stop("the judge's server billed more than its calls were allowed to use")
                reservation.release()
                return False
            error = await self._call(pair, order, reservation)
            if error is None:
                self._failed_in_a_row = 0
                return True
            again = wait_s is not None and worth_another_call(error) and self.outcome.stopped is None
            further = self._budget.reserve([reservation.limit]) if again else None
            if further is None:
                self._note_failure(error)
                return False
            reservation = further[0]
            try:
                await self._wait(error, error.retry_after_s or wait_s or 0.0)
            except asyncio.CancelledError:
                reservation.release()
                raise
        return False

    async def _wait(self, error: EndpointError, wait_s: float) -> None:
        # Calls that are refused together wait together; one line says it for all of them.
        if not self._waiting:
            self._on_wait(wait_words(error, wait_s))
        self._waiting += 1
        try:
            await asyncio.sleep(wait_s)
        finally:
            self._waiting -= 1

    async def _call(self, pair: AnswerPair, order: Order, reservation: Reservation) -> EndpointError | None:
        """One call with its row and its settlement; returns how it failed, if it did."""
        limit = reservation.limit
        try:
            answer = await self._client.ask(judge_messages(pair, order))
        except EndpointError as error:
            used = Spending(requests=1) if error.kind in _UNCHARGED else limit.as_spent()
            self._record(pair, order, reservation, "failed", used, error_kind=error.kind)
            self.outcome.failures[error.kind] += 1
            return error
        except BaseException:
            # Interrupted in mid-call: the server may finish, and bill, what nobody reads.
            self._record(pair, order, reservation, "failed", limit.as_spent(), error_kind="interrupted")
            raise
        reply = read_reply(answer.text)
        choice, reason = (reply.better, reply.reason) if reply else ("unparsable", mended(answer.text or ""))
        used = _used(answer, limit)
        excess = OVERBILLED if used.exceeds(limit) else None
        self._record(pair, order, reservation, choice, used, reason=reason, error_kind=excess)
        return None

    def _record(
        self, pair: AnswerPair, order: Order, reservation: Reservation, choice: str, used: Spending, *,
        reason: str = "", error_kind: str | None = None,
    ) -> None:  # fmt: skip
        reservation.settle(used)
        judge = self._client.model
        row = judge_row(pair, order, choice, judge=judge, used=used, reason=reason, error_kind=error_kind)
        self.outcome.rows.append(row)
        self._unwritten_calls += 1
        if self._unwritten_calls >= _CALLS_BETWEEN_WRITES:
            self._unwritten_calls = 0
            self._write(self.outcome.rows)

    def _note_failure(self, error: EndpointError) -> None:
        self.outcome.last_error = words_of(error)
        self._failed_in_a_row += 1
        if error.status in _HOPELESS or asks_for_too_long(error) or self._failed_in_a_row >= _FAILURES_IN_A_ROW:
            self.outcome.hopeless = True
            self._stop("the judge's calls fail")

    def _stop(self, why: str) -> None:
        self.outcome.stopped = self.outcome.stopped or why

    def _advance(self) -> None:
        self._done += 1
        self._on_pair(self._done)

    def _limit(self, pair: AnswerPair, order: Order) -> CallLimit:
        return call_limit(judge_messages(pair, order), self._client.max_tokens)


def _used(answer: JudgeAnswer, limit: CallLimit) -> Spending:
    """What the server says; what it does not say is taken to be all that was allowed."""
    return Spending(
        1,
        limit.prompt_tokens if answer.prompt_tokens is None else answer.prompt_tokens,
        limit.completion_tokens if answer.completion_tokens is None else answer.completion_tokens,
    )
