"""The driver: sends each request when its schedule says, however slow the answers are, or when a client is free for it.

Every wait is for an absolute deadline, so that lateness never adds up, and TTFT is counted from the schedule, so that
it is never hidden. In a closed loop the schedule of a request is the moment from which its client was free to send it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing

from quantgate.replay.closed_loop import ClosedLoop
from quantgate.replay.history import AnsweredTurn, History, RecordedHistory
from quantgate.replay.observation import RequestObservation
from quantgate.targets.base import RequestEnd, Target, TargetGoneError
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import Clock

OnEnded = Callable[[RequestObservation], None]

# Tasks are made at least this long before they are due, and those of twice this time together.
_AHEAD_NS = 50_000_000


class Driver:
    """Drives one target; `on_ended` is handed each request as it ends.

    `timeout_ns` is how long a client waits for a whole answer after sending; None waits for ever. `history` makes the
    later turns of sessions; None sends them as planned.
    """

    def __init__(
        self,
        target: Target,
        clock: Clock,
        on_ended: OnEnded,
        timeout_ns: int | None = None,
        history: History | None = None,
    ) -> None:
        self._target = target
        self._clock = clock
        self._on_ended = on_ended
        self._timeout_ns = timeout_ns
        self._history = history or RecordedHistory()

    async def replay(
        self, requests: Iterable[PlannedRequest], anchor_ns: int, closed_loop: ClosedLoop | None = None
    ) -> None:
        """Sends every request at `anchor_ns` + its schedule and returns when all have ended.

        closed_loop: the clients that send the requests in their order, instead of the schedule; they begin together at
        the earliest schedule.

        Cancelling it closes the open requests; those that had ended were handed over before. Raises TargetGoneError
        (after closing the open requests) where the target itself is gone.
        """
        deaths: tuple[BaseException, ...] = ()
        chains = sessions(requests)
        try:
            async with asyncio.TaskGroup() as tasks:
                if closed_loop is None:
                    await self._begin_on_schedule(tasks, chains, anchor_ns)
                else:
                    self._begin_clients(tasks, chains, anchor_ns, closed_loop)
        except* TargetGoneError as gone:
            deaths = gone.exceptions
        if deaths:
            # Every open request may tell the same death; one is enough. Raised here and not above, because Python
            # before 3.11.4 wraps whatever such a clause raises into a group again.
            raise deaths[0]

    async def _begin_on_schedule(
        self, tasks: asyncio.TaskGroup, chains: list[list[PlannedRequest]], anchor_ns: int
    ) -> None:
        """Gives every session and lone request a task of its own, shortly before its first turn is due.

        Not all at once: to set up the tasks of a long plan takes longer than its first requests can wait, and every
        timer that is pending makes the others dearer.
        """
        for turns in sorted(chains, key=lambda turns: turns[0].scheduled_ns):
            due_ns = anchor_ns + turns[0].scheduled_ns
            if due_ns - self._clock.now_ns() > 2 * _AHEAD_NS:
                await self._sleep_until(due_ns - _AHEAD_NS)
            tasks.create_task(self._replay_session(turns, due_ns))

    def _begin_clients(
        self,
        tasks: asyncio.TaskGroup,
        chains: list[list[PlannedRequest]],
        anchor_ns: int,
        closed_loop: ClosedLoop,
    ) -> None:
        if chains:
            start_ns = anchor_ns + min(turns[0].scheduled_ns for turns in chains)
            waiting = iter(chains)
            for _ in range(closed_loop.clients):
                tasks.create_task(self._serve_client(waiting, start_ns, closed_loop.think_ns))

    async def _serve_client(self, waiting: Iterator[list[PlannedRequest]], free_ns: int, think_ns: int) -> None:
        """Takes from `waiting`, which all clients share, until nothing is left."""
        for turns in waiting:
            free_ns = think_ns + await self._replay_session(turns, free_ns)

    async def _replay_session(self, turns: list[PlannedRequest], scheduled_ns: int) -> int:
        """Sends the first turn at `scheduled_ns`; returns when the last one ended."""
        answered: list[AnsweredTurn] = []
        for position, planned in enumerate(turns):
            if position > 0:
                scheduled_ns = self._clock.now_ns() + planned.think_time_ns
            # Before the wait, so that encoding a long history takes from the think time and makes no request late.
            request = self._history.next_turn(planned, answered)
            await self._sleep_until(scheduled_ns)
            observation = await self._observe(request, scheduled_ns)
            self._on_ended(observation)
            if self._history.needs_answers:
                answered.append(AnsweredTurn(planned, self._answer_of(observation)))
        return observation.ended_ns

    def _answer_of(self, observation: RequestObservation) -> str | None:
        """The whole answer; None where the request did not finish."""
        if observation.end.status != "finished":
            return None
        if observation.pieces:
            return observation.text(reasoning=False)
        return self._target.decode_text(observation.token_ids)

    async def _observe(self, request: PlannedRequest, scheduled_ns: int) -> RequestObservation:
        observation = RequestObservation(request, scheduled_ns, sent_ns=self._clock.now_ns())
        try:
            async with asyncio.timeout(self._patience_s(request)) as patience:
                observation.end = await self._read_answer(observation)
        except TargetGoneError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever breaks one request is its result and stops no other
            observation.end = (
                RequestEnd("aborted", abort_cause="timeout")
                if patience.expired()
                else RequestEnd("failed", abort_cause="error", error=f"{type(error).__name__}: {error}")
            )
        observation.ended_ns = self._clock.now_ns()
        observation.settle()
        return observation

    def _patience_s(self, request: PlannedRequest) -> float | None:
        """How long the client waits; what it needs to read the answer is no waiting."""
        if self._timeout_ns is None:
            return None
        reading_s = 0.0 if request.read_tokens_per_s is None else request.output_tokens / request.read_tokens_per_s
        return self._timeout_ns / 1e9 + reading_s

    async def _read_answer(self, observation: RequestObservation) -> RequestEnd:
        """The answer's end, or the client's own, where it leaves by plan."""
        leaves_after_ns = observation.request.disconnect_after_ns
        try:
            async with asyncio.timeout(None if leaves_after_ns is None else leaves_after_ns / 1e9) as stay:
                return await self._read_events(observation)
        except TimeoutError:
            if not stay.expired():
                raise
            return RequestEnd("aborted", abort_cause="impatience")

    async def _read_events(self, observation: RequestObservation) -> RequestEnd:
        request = observation.request
        patience_tokens = request.disconnect_after_tokens or request.output_tokens
        async with aclosing(self._target.submit(request)) as events:
            async for event in events:
                taken_ns = self._clock.now_ns()
                observation.take(event, taken_ns)
                if event.end is not None:
                    return event.end
                if observation.tokens_so_far >= patience_tokens < request.output_tokens:
                    return RequestEnd("aborted", abort_cause="disconnect")
                if request.read_tokens_per_s is not None:
                    # Until it has read these it takes no more, so that the target has to wait or to keep the rest.
                    await self._sleep_until(taken_ns + round(event.tokens / request.read_tokens_per_s * 1e9))
        return observation.end

    async def _sleep_until(self, deadline_ns: int) -> None:
        while (remaining_ns := deadline_ns - self._clock.now_ns()) > 0:
            await asyncio.sleep(remaining_ns / 1e9)


def sessions(requests: Iterable[PlannedRequest]) -> list[list[PlannedRequest]]:
    """Requests grouped into chains: the turns of a session in order, and each lone request by itself."""
    by_session: dict[tuple[str, str], list[PlannedRequest]] = {}
    for request in requests:
        key = ("request", request.request_id) if request.session_id is None else ("session", request.session_id)
        by_session.setdefault(key, []).append(request)
    return [sorted(turns, key=lambda request: request.turn) for turns in by_session.values()]
