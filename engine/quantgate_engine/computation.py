"""From a step's plan to its tokens: the executor's part of a step, and what becomes of the requests by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from quantgate_engine.clock import Clock
from quantgate_engine.executor.base import Executor, NoToken, SampledToken
from quantgate_engine.kv.sharing import PrefixSharing
from quantgate_engine.live_requests import LiveRequests
from quantgate_engine.request import AbortCause, FinishReason, Request, RequestState
from quantgate_engine.scheduler.scheduler import Scheduler
from quantgate_engine.scheduler.step_plan import StepPlan
from quantgate_engine.step_result import StepResult, StepWork

_NOTHING_COMPUTED = StepPlan()


class Computation:
    """Has plans computed, counts what was computed, and gives each request the token that was drawn for it."""

    def __init__(
        self,
        executor: Executor,
        clock: Clock,
        by_id: Mapping[str, Request],
        live: LiveRequests,
        scheduler: Scheduler,
        sharing: PrefixSharing,
    ) -> None:
        self._executor = executor
        self._clock = clock
        self._by_id = by_id
        self._live = live
        self._scheduler = scheduler
        self._sharing = sharing

    def compute(self, work: StepWork, result: StepResult) -> Sequence[SampledToken | NoToken | None]:
        """What was drawn for each sequence of the plan; nothing where the executor failed.

        Where it had too little memory for the step, the next one is smaller and nobody has lost anything but time. Else
        whoever the step was for ends as failed, and the requests of later steps go on.
        """
        plan = work.plan
        copied = False
        try:
            if plan.copies:
                self._executor.copy_blocks(plan.copies)
            copied = True
            sampled = self._executor.execute(plan.sequences) if plan.sequences else []
            if len(sampled) != len(plan.sequences):
                raise RuntimeError(f"the executor answered {len(sampled)} of {len(plan.sequences)} sequences")
        except Exception as failure:  # noqa: BLE001 - whatever a kernel raises, the requests of later steps go on
            work.computed, work.out_of_memory = _NOTHING_COMPUTED, isinstance(failure, MemoryError)
            # Copies cannot be tried again: where one failed, nobody knows which blocks hold what.
            too_large = work.out_of_memory and copied
            doomed = self._scheduler.shrink(plan) if too_large else self._touched(plan)
            self._fail(doomed, failure, result)
            return []
        self._scheduler.recover()
        return sampled

    def count(self, work: StepWork) -> None:
        """Counts the tokens that were computed, and lets other requests find the blocks that they filled."""
        computed = work.computed
        decoded, prefilled = computed.requests[: computed.num_decodes], computed.requests[computed.num_decodes :]
        again = 0
        for request in decoded:
            # Hardly any of them computes again what it had lost: the others do not pay for the call.
            if request.num_computed_tokens >= request.lost_tokens:
                request.num_computed_tokens += 1
            else:
                again += request.advance(1)
        for request, sequence in zip(prefilled, computed.sequences[computed.num_decodes :], strict=True):
            again += request.advance(len(sequence.token_ids))
        work.recomputed_tokens += again
        self._sharing.computed(prefilled)

    def take_tokens(
        self, computed: StepPlan, sampled: Sequence[SampledToken | NoToken | None], result: StepResult
    ) -> None:
        """Appends each drawn token to its request, and finishes those that have come to their end.

        A request for which none could be drawn ends as failed, by itself.

        What was drawn for a request that was given up meanwhile is dropped.
        """
        now_ns = self._clock.now_ns()
        prefill, decoding, append = RequestState.PREFILL, RequestState.DECODING, result.tokens.append
        for request, token in zip(computed.requests, sampled, strict=True):
            if token is None:
                continue
            state, output = request.state, request.output
            if state is not prefill and state is not decoding:
                continue
            if isinstance(token, NoToken):
                request.error = token.error
                self._live.give_up(request, AbortCause.ERROR, result)
                continue
            if state is prefill:
                self._begin_decoding(request, now_ns)
            output.append(token)
            append((request, token))
            if token.token_id in request.end_token_ids:
                self._live.finish(request, FinishReason.STOP, now_ns, result)
            elif len(output) >= request.params.max_tokens:
                self._live.finish(request, FinishReason.LENGTH, now_ns, result)

    def _begin_decoding(self, request: Request, now_ns: int) -> None:
        if request.first_token_ns is None:
            request.first_token_ns = now_ns
        self._scheduler.begin_decoding(request)

    def _touched(self, plan: StepPlan) -> list[Request]:
        """Those that the step computes, and those whose blocks it moves."""
        moved = [self._by_id[copy.request_id] for copy in plan.copies]
        return list(dict.fromkeys([*plan.requests, *moved]))

    def _fail(self, requests: Iterable[Request], failure: Exception, result: StepResult) -> None:
        for request in requests:
            request.error = f"{type(failure).__name__}: {failure}"
            self._live.give_up(request, AbortCause.ERROR, result)
