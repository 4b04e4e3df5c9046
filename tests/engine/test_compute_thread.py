"""Torch work of a process runs on one thread, whoever asks for it."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.interrupts import heeding_interrupts

from quantgate_engine.executor.compute_thread import (
    STRETCH_ROUNDS,
    THREAD_NAME,
    each_on_compute_thread,
    on_compute_thread,
    repeat_on_compute_thread,
)


def test_all_callers_share_one_thread() -> None:
    with ThreadPoolExecutor(4) as callers:
        names = set(callers.map(lambda _: on_compute_thread(lambda: threading.current_thread().name), range(20)))
    assert len(names) == 1
    assert names.pop().startswith(THREAD_NAME)


def test_work_on_the_thread_may_ask_for_it_again() -> None:
    assert on_compute_thread(lambda: on_compute_thread(lambda: 7)) == 7


def test_errors_come_back_to_the_caller() -> None:
    def fail() -> None:
        raise KeyError("why")

    with pytest.raises(KeyError, match="why"):
        on_compute_thread(fail)


def test_items_are_produced_there_and_handed_over_one_by_one() -> None:
    def items():
        for index in range(3):
            yield index, threading.current_thread().name

    seen = list(each_on_compute_thread(items()))
    assert [index for index, _ in seen] == [0, 1, 2]
    assert all(name.startswith(THREAD_NAME) for _, name in seen)


@pytest.mark.parametrize("rounds", [1, 3, STRETCH_ROUNDS, 2 * STRETCH_ROUNDS + 1])
def test_rounds_run_there_until_one_says_that_it_was_the_last(rounds: int) -> None:
    names: list[str] = []

    def work() -> bool:
        names.append(threading.current_thread().name)
        return len(names) < rounds

    repeat_on_compute_thread(work)
    assert len(names) == rounds
    assert all(name.startswith(THREAD_NAME) for name in names)
    names.clear()
    on_compute_thread(lambda: repeat_on_compute_thread(work))
    assert len(names) == rounds


def test_who_waits_for_the_thread_has_a_turn_between_two_rounds() -> None:
    other = threading.Thread(target=lambda: on_compute_thread(had_turn.set))
    had_turn, rounds = threading.Event(), 0

    def work() -> bool:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            other.start()
        time.sleep(0.02)
        return not had_turn.is_set() and rounds < STRETCH_ROUNDS

    repeat_on_compute_thread(work)
    other.join()
    assert rounds < STRETCH_ROUNDS


def test_what_a_round_raises_comes_back_to_the_caller_and_ends_the_rounds() -> None:
    rounds = 0

    def work() -> bool:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            raise KeyError("why")
        return True

    with pytest.raises(KeyError, match="why"):
        repeat_on_compute_thread(work)
    assert on_compute_thread(lambda: rounds) == 2


def test_an_interrupt_comes_out_when_the_running_round_is_over() -> None:
    rounds: list[str] = []

    def work() -> bool:
        rounds.append("begun")
        if len(rounds) == 3:
            # Before: until the caller waits, for a signal that comes just before it does not wake it.
            time.sleep(0.05)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.05)
        rounds.append("over")
        return len(rounds) < 40

    with heeding_interrupts():
        with pytest.raises(KeyboardInterrupt):
            repeat_on_compute_thread(work)
        assert rounds == ["begun", "over"] * 2
        assert on_compute_thread(lambda: len(rounds)) == 4
