"""What a step computes: decodes first, chunks within the budget, admission and its ageing."""

from __future__ import annotations

import pytest
from tests.engine.simulation import Simulation, prompt

from quantgate_engine.request import RequestState
from quantgate_engine.sampling_params import SamplingParams


def _shape(simulation: Simulation) -> list[list[tuple[str, int, int, bool]]]:
    """(request, start, tokens, sample) of every sequence of every step so far."""
    return [
        [(s.request_id, s.start_position, len(s.token_ids), s.sample) for s in step]
        for step in simulation.executor.steps
    ]


def test_a_long_prompt_goes_in_chunks_of_the_budget_and_samples_at_its_last() -> None:
    simulation = Simulation(max_step_tokens=16)
    simulation.core.add_request("a", prompt(40), SamplingParams(max_tokens=2))
    simulation.run()
    assert _shape(simulation) == [
        [("a", 0, 16, False)],
        [("a", 16, 16, False)],
        [("a", 32, 8, True)],
        [("a", 40, 1, True)],
    ]


@pytest.mark.parametrize("length", [15, 16, 17])
def test_chunks_end_exactly_at_the_budget(length: int) -> None:
    simulation = Simulation(max_step_tokens=16)
    simulation.core.add_request("a", prompt(length), SamplingParams(max_tokens=1))
    simulation.run()
    whole = [[("a", 0, length, True)]]
    split = [[("a", 0, 16, False)], [("a", 16, length - 16, True)]]
    assert _shape(simulation) == (whole if length <= 16 else split)


def test_decodes_go_first_and_prefill_takes_the_rest_of_the_budget() -> None:
    simulation = Simulation(max_step_tokens=16)
    simulation.core.add_request("a", prompt(4), SamplingParams(max_tokens=4))
    simulation.core.add_request("b", prompt(4), SamplingParams(max_tokens=4))
    simulation.core.step()
    simulation.core.add_request("long", prompt(30), SamplingParams(max_tokens=1))
    simulation.core.step()
    simulation.core.step()
    assert _shape(simulation)[1:] == [
        [("a", 4, 1, True), ("b", 4, 1, True), ("long", 0, 14, False)],
        [("a", 5, 1, True), ("b", 5, 1, True), ("long", 14, 14, False)],
    ]


def test_one_step_prefills_several_prompts_in_order_of_arrival() -> None:
    simulation = Simulation(max_step_tokens=16)
    for name, length in [("a", 5), ("b", 6), ("c", 9)]:
        simulation.core.add_request(name, prompt(length), SamplingParams(max_tokens=1))
    simulation.run()
    assert _shape(simulation) == [
        [("a", 0, 5, True), ("b", 0, 6, True), ("c", 0, 5, False)],
        [("c", 5, 4, True)],
    ]


def test_no_more_requests_are_active_than_allowed() -> None:
    simulation = Simulation(max_active_requests=2, max_step_tokens=64)
    for i in range(5):
        simulation.core.add_request(f"r{i}", prompt(4), SamplingParams(max_tokens=3))
    simulation.run()
    records = simulation.core.take_steps()
    assert max(record.active_requests for record in records) == 2
    assert [record.waiting_requests for record in records] == [3, 3, 3, 1, 1, 1, 0, 0, 0]


def test_the_step_records_hold_every_token_to_the_budget() -> None:
    simulation = Simulation(max_step_tokens=8, max_active_requests=4)
    for i in range(9):
        simulation.core.add_request(f"r{i}", prompt(3 + 5 * i), SamplingParams(max_tokens=1 + i))
    simulation.run()
    records = simulation.core.take_steps()
    assert max(record.prefill_tokens + record.decode_tokens for record in records) == 8


def test_a_head_that_does_not_fit_is_passed_over_only_so_often() -> None:
    # 16 blocks of 4: two of the small ones (5 blocks each) leave 6, and the big one needs 14.
    simulation = Simulation(num_blocks=16, max_active_requests=2, max_overtakes=3)
    for name in ("small-0", "small-1"):
        simulation.core.add_request(name, prompt(4), SamplingParams(max_tokens=17 if name.endswith("0") else 9))
    simulation.core.step()
    simulation.core.add_request("big", prompt(40), SamplingParams(max_tokens=17))
    for i in range(2, 12):
        simulation.core.add_request(f"small-{i}", prompt(4), SamplingParams(max_tokens=17 if i % 2 else 9))
    ended = simulation.run()
    admitted = [request.request_id for request in sorted(ended, key=lambda request: request.admitted_ns or 0)]
    big = next(request for request in ended if request.request_id == "big")
    assert admitted.index("big") == 5
    assert big.times_overtaken == 3
    assert all(request.state is RequestState.FINISHED for request in ended)


def test_nobody_is_overtaken_where_all_fit() -> None:
    simulation = Simulation(num_blocks=64)
    for i in range(10):
        simulation.core.add_request(f"r{i}", prompt(5 + i), SamplingParams(max_tokens=3))
    ended = simulation.run()
    assert [request.times_overtaken for request in ended] == [0] * 10


def test_a_request_that_needs_the_whole_pool_runs() -> None:
    simulation = Simulation(num_blocks=5, block_size=4)
    # 16 prompt tokens and 5 outputs, the last of which is never stored: 20 slots.
    simulation.core.add_request("a", prompt(16), SamplingParams(max_tokens=5))
    [ended] = simulation.run()
    assert ended.state is RequestState.FINISHED
    assert ended.kv_peak_blocks == 5


@pytest.mark.parametrize("outside", [-1, 1000])
def test_a_token_outside_the_vocabulary_is_rejected_before_it_can_spoil_a_batch(outside: int) -> None:
    simulation = Simulation()
    simulation.core.add_request("a", (5, outside), SamplingParams(max_tokens=1))
    simulation.core.add_request("b", (5, 999), SamplingParams(max_tokens=1))
    ended = {request.request_id: request for request in simulation.run()}
    assert ended["a"].state is RequestState.REJECTED
    assert "expected 0 to 999, the model's vocabulary" in str(ended["a"].error)
    assert ended["b"].state is RequestState.FINISHED


@pytest.mark.parametrize(
    ("length", "max_tokens", "message"),
    [
        (0, 4, "Request a has an empty prompt; expected at least 1 token."),
        (
            500,
            13,
            "Request a can never run: 500 prompt tokens and max_tokens 13 make 513, above the context limit of 512; "
            "shorten the prompt or lower max_tokens.",
        ),
        (
            16,
            6,
            "Request a can never run: 16 prompt tokens and max_tokens 6 need 6 KV blocks of 4 tokens, and the pool "
            "has 5; raise num_kv_blocks, shorten the prompt or lower max_tokens.",
        ),
    ],
)
def test_what_can_never_run_is_rejected_at_once_with_the_numbers(length: int, max_tokens: int, message: str) -> None:
    simulation = Simulation(num_blocks=5, block_size=4)
    simulation.core.add_request("a", prompt(length), SamplingParams(max_tokens=max_tokens))
    [ended] = simulation.core.step().ended
    assert ended.state is RequestState.REJECTED
    assert ended.error == message
    assert simulation.executor.steps == []
    assert [record.rejected_count for record in simulation.core.take_steps()] == [1]
    assert not simulation.core.has_work
