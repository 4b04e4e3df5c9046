"""What one step of the engine brought, and how its record is made."""

from __future__ import annotations

from dataclasses import dataclass, field

from quantgate_engine.executor.base import SampledToken
from quantgate_engine.request import Request, RequestState
from quantgate_engine.scheduler.step_plan import StepPlan
from quantgate_engine.step_record import StepRecord


@dataclass(slots=True)
class StepResult:
    """A token for each request that drew one, and the requests that ended.

    A request's last token stands in `tokens` beside its end in `ended`.
    """

    tokens: list[tuple[Request, SampledToken]] = field(default_factory=list)
    ended: list[Request] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StepLoad:
    """Queues and cache at the step's fullest: planned, and nothing given back yet."""

    active_requests: int
    waiting_requests: int
    used_tokens: int
    allocated_blocks: int
    slot_utilization: float


@dataclass(slots=True)
class StepWork:
    """What came of a plan: `computed` is empty where the executor failed, so that only computed tokens count.

    `recomputed_tokens` are those of it that a preemption had lost.
    """

    plan: StepPlan
    computed: StepPlan
    recomputed_tokens: int = 0
    out_of_memory: bool = False


def make_record(
    step_index: int, started_ns: int, duration_ns: int, load: StepLoad, work: StepWork, ended: list[Request]
) -> StepRecord:
    """The row of the step log; what gave way and what was taken over from the cache counts in any case."""
    return StepRecord(
        step_index=step_index,
        started_ns=started_ns,
        duration_ns=duration_ns,
        batch_size_prefill=work.computed.num_prefills,
        batch_size_decode=work.computed.num_decodes,
        prefill_tokens=work.computed.prefill_tokens,
        decode_tokens=work.computed.num_decodes,
        context_tokens=work.computed.context_tokens,
        active_requests=load.active_requests,
        waiting_requests=load.waiting_requests,
        kv_cache_used_tokens=load.used_tokens,
        kv_allocated_blocks=load.allocated_blocks,
        kv_cache_block_utilization=load.slot_utilization,
        recomputed_tokens=work.recomputed_tokens,
        cached_prompt_tokens=work.plan.cached_prompt_tokens,
        preemption_count=work.plan.preemptions,
        request_abort_count=sum(request.state is RequestState.ABORTED for request in ended),
        rejected_count=sum(request.state is RequestState.REJECTED for request in ended),
        oom_count=int(work.out_of_memory),
    )
