"""The step loop: ends, aborts, failures, times and records, against values computed by hand."""

from __future__ import annotations

import pytest
from tests.engine.simulation import Simulation, expected_tokens, prompt

from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.executor.base import ScheduledSequence
from quantgate_engine.outputs import EngineTimes, end_of
from quantgate_engine.request import AbortCause, FinishReason, Request, RequestState
from quantgate_engine.sampling_params import SamplingParams


def test_tokens_do_not_depend_on_batch_mates_budget_or_pool() -> None:
    for max_step_tokens in (4, 7, 64):
        simulation = Simulation(max_step_tokens=max_step_tokens)
        for i in range(6):
            simulation.core.add_request(f"r{i}", prompt(3 + 4 * i, i), SamplingParams(max_tokens=5 + i, seed=i))
        for request in simulation.run():
            i = int(request.request_id[1:])
            assert request.output_token_ids == expected_tokens(prompt(3 + 4 * i, i), 5 + i, seed=i)


def test_the_order_of_everything_is_the_same_in_every_run() -> None:
    def run() -> object:
        simulation = Simulation(num_blocks=20)
        for i in range(12):
            simulation.core.add_request(f"r{i}", prompt(2 + 3 * i), SamplingParams(max_tokens=1 + i % 5))
        ends = [(request.request_id, request.finished_ns) for request in simulation.run()]
        return ends, simulation.executor.steps, simulation.core.take_steps()

    assert run() == run()


def test_times_and_block_seconds_by_hand() -> None:
    simulation = Simulation(max_step_tokens=8, block_size=4)
    simulation.clock.advance_ns(500)
    simulation.core.add_request("a", prompt(10), SamplingParams(max_tokens=3))
    simulation.clock.advance_ns(100)
    [request] = simulation.run()
    # Steps cost 1000 + 10 a prefill token + 100 a decode: 1080 (8 tokens), 1020 (2 tokens), 1100, 1100; from 600 on.
    end = end_of(request)
    assert end.engine == EngineTimes(arrived_ns=500, admitted_ns=600, first_token_ns=2700, finished_ns=4900)
    assert (end.status, end.finish_reason, end.abort_cause, end.error) == ("finished", "length", None, None)
    # 2 blocks for the first 8 tokens, then 3 for 10, 11 and 12 tokens.
    assert end.kv_peak_blocks == 3
    assert end.kv_block_seconds == pytest.approx((2 * 1080 + 3 * (1020 + 1100 + 1100)) / 1e9)


def test_step_records_add_up_to_the_requests() -> None:
    simulation = Simulation(num_blocks=30)
    for i in range(10):
        simulation.core.add_request(f"r{i}", prompt(2 + 4 * i), SamplingParams(max_tokens=1 + i))
    simulation.core.add_request("never", prompt(600), SamplingParams(max_tokens=1))
    for _ in range(4):
        simulation.core.step()
    simulation.core.abort("r9", AbortCause.TIMEOUT)
    simulation.run()
    records = simulation.core.take_steps()
    assert [record.step_index for record in records] == list(range(len(records)))
    assert sum(record.prefill_tokens for record in records) == sum(2 + 4 * i for i in range(9))
    assert sum(record.decode_tokens for record in records) == sum(i for i in range(9))
    assert sum(record.rejected_count for record in records) == 1
    assert sum(record.request_abort_count for record in records) == 1
    assert sum(record.duration_ns for record in records) == simulation.clock.now_ns()
    assert simulation.core.take_steps() == []


def test_a_step_record_by_hand() -> None:
    simulation = Simulation(max_step_tokens=16, max_active_requests=2, block_size=4)
    simulation.core.add_request("a", prompt(5), SamplingParams(max_tokens=4))
    simulation.core.step()
    simulation.core.add_request("b", prompt(9), SamplingParams(max_tokens=4))
    simulation.core.add_request("c", prompt(9), SamplingParams(max_tokens=4))
    simulation.core.step()
    record = simulation.core.take_steps()[1]
    assert (record.started_ns, record.duration_ns) == (1050, 1000 + 9 * 10 + 100)
    assert (record.batch_size_prefill, record.batch_size_decode) == (1, 1)
    assert (record.prefill_tokens, record.decode_tokens, record.context_tokens) == (9, 1, 15)
    assert (record.active_requests, record.waiting_requests) == (2, 1)
    assert (record.kv_cache_used_tokens, record.kv_allocated_blocks) == (15, 5)
    assert record.kv_cache_block_utilization == 15 / 20


def test_the_end_token_stops_a_request_unless_it_ignores_it() -> None:
    drawn = expected_tokens(prompt(4), 6)
    simulation = Simulation(eos_token_ids=(drawn[2],))
    simulation.core.add_request("heeds", prompt(4), SamplingParams(max_tokens=6))
    simulation.core.add_request("ignores", prompt(4), SamplingParams(max_tokens=6, ignore_eos=True))
    ended = {request.request_id: request for request in simulation.run()}
    assert ended["heeds"].output_token_ids == drawn[:3]
    assert ended["heeds"].finish_reason is FinishReason.STOP
    assert ended["ignores"].output_token_ids == drawn
    assert ended["ignores"].finish_reason is FinishReason.LENGTH


def test_a_stop_token_counts_also_where_the_end_token_is_ignored_and_at_the_last_position() -> None:
    drawn = expected_tokens(prompt(4), 6)
    simulation = Simulation()
    for name, stop in [("early", drawn[1]), ("last", drawn[5])]:
        params = SamplingParams(max_tokens=6, stop_token_ids=(stop,), ignore_eos=True)
        simulation.core.add_request(name, prompt(4), params)
    ended = {request.request_id: request for request in simulation.run()}
    assert ended["early"].output_token_ids == drawn[:2]
    assert ended["last"].output_token_ids == drawn
    assert {request.finish_reason for request in ended.values()} == {FinishReason.STOP}


def _simulation_with_request_in(state: RequestState) -> Simulation:
    simulation = Simulation(max_step_tokens=8, max_active_requests=1)
    if state is RequestState.WAITING:
        simulation.core.add_request("other", prompt(4), SamplingParams(max_tokens=50))
    length = 20 if state is RequestState.PREFILL else 4
    request = simulation.core.add_request("a", prompt(length), SamplingParams(max_tokens=50))
    simulation.core.step()
    assert request.state is state
    return simulation


@pytest.mark.parametrize("state", [RequestState.WAITING, RequestState.PREFILL, RequestState.DECODING])
@pytest.mark.parametrize("cause", list(AbortCause))
def test_an_abort_between_steps_gives_everything_back_in_the_next(state: RequestState, cause: AbortCause) -> None:
    simulation = _simulation_with_request_in(state)
    simulation.core.abort("a", cause)
    simulation.core.abort("a", AbortCause.CANCELLED)
    [ended] = simulation.core.step().ended
    assert (ended.request_id, ended.state, ended.abort_cause) == ("a", RequestState.ABORTED, cause)
    assert simulation.core.aborts_by_cause == {cause: 1}
    simulation.core.check_integrity()
    # In the waiting case the other request went on in that step, to its fifth token and second block.
    assert simulation.core.held_blocks == (2 if state is RequestState.WAITING else 0)
    assert end_of(ended).status == ("failed" if cause is AbortCause.ERROR else "aborted")


@pytest.mark.parametrize("state", [RequestState.WAITING, RequestState.PREFILL, RequestState.DECODING])
def test_an_abort_in_the_middle_of_a_step_drops_what_the_step_drew(state: RequestState) -> None:
    simulation = _simulation_with_request_in(state)
    simulation.executor.hook = lambda _sequences: simulation.core.abort("a", AbortCause.DISCONNECT)
    result = simulation.core.step()
    assert [request.request_id for request in result.ended] == ["a"]
    assert "a" not in [request.request_id for request, _ in result.tokens]
    assert len(result.ended[0].output) == (1 if state is RequestState.DECODING else 0)
    simulation.core.check_integrity()
    assert simulation.core.held_blocks == (2 if state is RequestState.WAITING else 0)


def test_an_abort_before_the_first_step_and_of_nobody() -> None:
    simulation = Simulation()
    simulation.core.add_request("a", prompt(4), SamplingParams())
    simulation.core.abort("a", AbortCause.CANCELLED)
    simulation.core.abort("nobody", AbortCause.CANCELLED)
    [ended] = simulation.run()
    assert (ended.state, ended.admitted_ns) == (RequestState.ABORTED, None)
    assert simulation.executor.steps == []


def test_an_abort_after_the_end_changes_nothing() -> None:
    simulation = Simulation()
    simulation.core.add_request("a", prompt(4), SamplingParams(max_tokens=2))
    [ended] = simulation.run()
    simulation.core.abort("a", AbortCause.CANCELLED)
    assert simulation.run() == []
    assert (ended.state, simulation.core.aborts_by_cause) == (RequestState.FINISHED, {})


def _fail_with(failure: Exception) -> object:
    def hook(_sequences: tuple[ScheduledSequence, ...]) -> None:
        raise failure

    return hook


def test_a_failing_executor_ends_the_requests_of_its_step_and_no_others() -> None:
    simulation = Simulation(max_active_requests=2)
    for name in ("a", "b", "later"):
        simulation.core.add_request(name, prompt(4), SamplingParams(max_tokens=3))
    simulation.core.step()
    simulation.core.take_steps()
    simulation.executor.hook = _fail_with(ValueError("bad shape"))
    result = simulation.core.step()
    assert {request.request_id for request in result.ended} == {"a", "b"}
    for request in result.ended:
        end = end_of(request)
        assert (end.status, end.abort_cause) == ("failed", "error")
        assert end.error == "ValueError: bad shape"
    [record] = simulation.core.take_steps()
    assert (record.decode_tokens, record.batch_size_decode, record.oom_count) == (0, 0, 0)
    assert record.request_abort_count == 2
    assert simulation.core.held_blocks == 0
    simulation.executor.hook = None
    [later] = simulation.run()
    assert later.output_token_ids == expected_tokens(prompt(4), 3)


def test_an_executor_that_answers_for_too_few_sequences_is_a_failure_too() -> None:
    simulation = Simulation()
    simulation.core.add_request("a", prompt(4), SamplingParams())
    simulation.executor.execute = lambda _sequences: []
    [ended] = simulation.run()
    assert ended.error == "RuntimeError: the executor answered 0 of 1 sequences"


def test_an_id_is_free_again_when_its_request_has_ended() -> None:
    simulation = Simulation()
    simulation.core.add_request("a", prompt(4), SamplingParams(max_tokens=1))
    with pytest.raises(ConfigurationError, match="'a' belongs to a request that has not ended"):
        simulation.core.add_request("a", prompt(4), SamplingParams(max_tokens=1))
    simulation.run()
    simulation.core.add_request("a", prompt(5), SamplingParams(max_tokens=1))
    ended: list[Request] = simulation.run()
    assert len(ended) == 1


def test_one_driver_at_a_time() -> None:
    core = Simulation().core
    core.claim()
    with pytest.raises(RunError, match="The engine is busy"):
        core.claim()
    core.relinquish()
    core.claim()
