"""Torch work of a process runs on one thread, whoever asks for it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from quantgate_engine.executor.compute_thread import THREAD_NAME, each_on_compute_thread, on_compute_thread


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
