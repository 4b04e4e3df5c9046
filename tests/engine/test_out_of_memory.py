"""An executor that has too little memory for a step: smaller steps, and no request pays for it but with time."""

from __future__ import annotations

import pytest
from tests.engine.cached_engine import CachedEngine
from tests.engine.simulation import Simulation, prompt

from quantgate_engine.request import AbortCause, RequestState
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.batching.modes import BATCH_MODES
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.batching.step_budget import StepBudget
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings


def _limit_tokens(engine: CachedEngine, most: int) -> None:
    """From now on a step of more than `most` tokens finds no memory."""

    def refuse() -> None:
        if sum(len(sequence.token_ids) for sequence in engine.executor.steps[-1]) > most:
            raise MemoryError("activations do not fit")

    engine.executor.hook = refuse


@pytest.mark.parametrize("mode", BATCH_MODES)
@pytest.mark.parametrize("most", [1, 3, 7])
def test_everything_finishes_right_with_memory_for_a_few_tokens(mode: str, most: int) -> None:
    engine = CachedEngine(batching=BatchingSettings(mode=mode))
    _limit_tokens(engine, most)
    for i in range(6):
        engine.add(f"r{i}", prompt(5 + 4 * i, i), max_tokens=6, seed=i)
    ended = engine.run()
    assert {request.state for request in ended.values()} == {RequestState.FINISHED}
    assert engine.core.totals.oom_count > 0
    assert engine.core.totals.recomputed_tokens == 0
    assert engine.core.totals.request_abort_count == 0


def test_preemption_and_swap_survive_it_too() -> None:
    engine = CachedEngine(
        num_blocks=8,
        admission=AdmissionSettings(estimator="optimistic"),
        preemption=PreemptionSettings(mode="swap", host_blocks=16),
    )
    _limit_tokens(engine, 2)
    for i in range(4):
        engine.add(f"r{i}", prompt(8, i * 100), max_tokens=20, seed=i)
    assert {request.state for request in engine.run().values()} == {RequestState.FINISHED}
    assert engine.core.totals.preemption_count > 0


def test_the_step_by_hand() -> None:
    engine = CachedEngine(max_step_tokens=16)
    _limit_tokens(engine, 8)
    engine.add("a", prompt(32), max_tokens=1)
    engine.run()
    tokens = [len(step[0].token_ids) for step in engine.executor.steps]
    # 16 is too much, so 8; one more token each time that a step went through, until 9 is too much, so 4.
    assert tokens == [16, 8, 9, 4, 5, 6, 7, 2]
    records = engine.core.take_steps()
    assert [record.oom_count for record in records] == [1, 0, 1, 0, 0, 0, 0, 0]
    assert [record.prefill_tokens for record in records] == [0, 8, 0, 4, 5, 6, 7, 2]


def test_one_token_that_finds_no_memory_fails_its_request_and_no_other() -> None:
    simulation = Simulation(max_active_requests=2)

    def refuse(_sequences: object) -> None:
        raise MemoryError("nothing left")

    simulation.core.add_request("a", prompt(4), SamplingParams(max_tokens=3))
    simulation.executor.hook = refuse
    ended = simulation.run()
    assert [(request.abort_cause, request.error) for request in ended] == [
        (AbortCause.ERROR, "MemoryError: nothing left")
    ]
    assert simulation.core.totals.oom_count == 3
    simulation.executor.hook = None
    simulation.core.add_request("b", prompt(4), SamplingParams(max_tokens=3))
    assert [request.state for request in simulation.run()] == [RequestState.FINISHED]


def test_a_prompt_that_may_not_be_cut_fails_where_it_does_not_fit_alone() -> None:
    engine = CachedEngine(batching=BatchingSettings(chunked_prefill=False), max_step_tokens=16)
    _limit_tokens(engine, 12)
    engine.add("small", prompt(6), max_tokens=2)
    engine.add("large", prompt(14, 100), max_tokens=2)
    ended = engine.run()
    assert ended["small"].state is RequestState.FINISHED
    assert ended["large"].abort_cause is AbortCause.ERROR


def test_a_budget_comes_back_to_what_it_was() -> None:
    budget = StepBudget(100)
    assert budget.shrink(100)
    assert budget.tokens == 50
    for _ in range(20):
        budget.recover()
    assert budget.tokens == 100
    assert not budget.shrink(1)
    assert not budget.shrink(101)
