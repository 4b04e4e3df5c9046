"""Whatever arrives, ends or fails, and whenever: no block is lost or shared, and no request is forgotten."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.engine.simulation import Simulation, expected_tokens, prompt

from quantgate_engine.executor.base import ScheduledSequence
from quantgate_engine.request import AbortCause, FinishReason, Request, RequestState
from quantgate_engine.sampling_params import SamplingParams

FINAL = {RequestState.FINISHED, RequestState.ABORTED, RequestState.REJECTED}


class EngineMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.simulation = Simulation(num_blocks=10, block_size=4, max_active_requests=3, max_step_tokens=8)
        self.submitted: dict[str, Request] = {}
        self.ended: list[Request] = []

    @rule(length=st.integers(0, 48), max_tokens=st.integers(1, 12))
    def submit(self, length: int, max_tokens: int) -> None:
        name = f"r{len(self.submitted)}"
        params = SamplingParams(max_tokens=max_tokens)
        self.submitted[name] = self.simulation.core.add_request(name, prompt(length, len(self.submitted)), params)

    @precondition(lambda self: self.submitted)
    @rule(data=st.data(), cause=st.sampled_from(AbortCause))
    def abort(self, data: st.DataObject, cause: AbortCause) -> None:
        self.simulation.core.abort(data.draw(st.sampled_from(sorted(self.submitted))), cause)

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        self.simulation.core.finish(data.draw(st.sampled_from(sorted(self.submitted))))

    @rule()
    def step(self) -> None:
        self._step()

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def step_with_an_abort_in_the_middle(self, data: st.DataObject) -> None:
        victim = data.draw(st.sampled_from(sorted(self.submitted)))
        self.simulation.executor.hook = lambda _sequences: self.simulation.core.abort(victim, AbortCause.DISCONNECT)
        result = self._step()
        if self.simulation.executor.hook_ran:
            assert victim not in [request.request_id for request, _ in result]

    @rule()
    def step_that_fails(self) -> None:
        def fail(_sequences: tuple[ScheduledSequence, ...]) -> None:
            raise RuntimeError("planted")

        self.simulation.executor.hook = fail
        assert self._step() == [] or not self.simulation.executor.hook_ran

    def _step(self) -> list[tuple[Request, object]]:
        self.simulation.executor.hook_ran = False
        result = self.simulation.core.step()
        self.simulation.executor.hook = None
        self.ended.extend(result.ended)
        return list(result.tokens)

    @invariant()
    def books_add_up(self) -> None:
        self.simulation.core.check_integrity()

    @invariant()
    def each_request_ends_once_and_in_a_final_state(self) -> None:
        names = [request.request_id for request in self.ended]
        assert len(names) == len(set(names))
        ended = set(names)
        for name, request in self.submitted.items():
            assert (request.state in FINAL) == (name in ended)

    @invariant()
    def steps_stay_within_the_budget_and_no_block_is_shared(self) -> None:
        for sequences in self.simulation.executor.steps:
            assert sum(len(sequence.token_ids) for sequence in sequences) <= 8
            assert len(sequences) <= 3
            blocks = [block for sequence in sequences for block in sequence.block_table]
            assert len(blocks) == len(set(blocks))
        self.simulation.executor.steps.clear()

    def teardown(self) -> None:
        """Whatever state the rules left, the engine comes to its end, and what finished is right to the token."""
        self.ended.extend(self.simulation.run(max_steps=5000))
        assert {request.request_id for request in self.ended} == set(self.submitted)
        assert self.simulation.core.held_blocks == 0
        for request in self.ended:
            want = expected_tokens(request.prompt_token_ids, len(request.output)) if request.output else ()
            assert request.output_token_ids == want
            if request.state is RequestState.FINISHED and request.finish_reason is FinishReason.LENGTH:
                assert len(request.output) == request.params.max_tokens
        records = self.simulation.core.take_steps()
        computed = sum(record.prefill_tokens + record.decode_tokens for record in records)
        assert computed == sum(request.num_computed_tokens for request in self.ended)
        assert sum(record.request_abort_count for record in records) == self.simulation.core.aborts_by_cause.total()


EngineMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestEngineMachine = EngineMachine.TestCase
