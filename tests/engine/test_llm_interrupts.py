"""Ctrl-C in `LLM.generate`: at once, amid a step, and again while the first one's clean-up waits."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.tiny_folder import save_tiny_folder
from tests.interrupts import heeding_interrupts

from quantgate_engine import LLM, SamplingParams

GREEDY = SamplingParams(max_tokens=12, ignore_eos=True)
PROMPTS = [[5], [6, 7, 8], list(range(3, 28)), list(range(40, 100)), list(range(9, 16)), list(range(60, 91))]


@pytest.fixture
def llm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LLM:
    monkeypatch.setenv("QUANTGATE_CACHE", str(tmp_path / "cache"))
    folder = save_tiny_folder(tmp_path / "tiny")
    return LLM(folder, scheme="fp32", max_active_requests=4, max_step_tokens=24, block_size=4, threads=1)


def test_an_interrupt_leaves_the_engine_empty_and_ready(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    execute, calls = llm.core.executor.execute, 0

    def interrupted(sequences: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return execute(sequences)

    with monkeypatch.context() as patch:
        patch.setattr(llm.core.executor, "execute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            llm.generate(PROMPTS, GREEDY)
    assert not llm.core.has_work
    assert llm.core.held_blocks == 0
    assert len(llm.generate([[7, 8]], GREEDY)[0].token_ids) == 12


def test_a_signal_amid_a_step_lets_it_end_and_leaves_the_engine_empty_and_ready(
    llm: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute, calls, answers = llm.core.executor.execute, 0, 0

    def signalled(sequences: object) -> object:
        nonlocal calls, answers
        calls += 1
        if calls == 3:
            # Before: until the caller waits, for a signal that comes just before it does not wake it.
            time.sleep(0.05)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.05)
        answer = execute(sequences)
        answers += 1
        return answer

    with heeding_interrupts(), monkeypatch.context() as patch:
        patch.setattr(llm.core.executor, "execute", signalled)
        with pytest.raises(KeyboardInterrupt):
            llm.generate(PROMPTS, GREEDY)
        assert calls == answers == 3
    assert not llm.core.has_work
    assert llm.core.held_blocks == 0
    assert len(llm.generate([[7, 8]], GREEDY)[0].token_ids) == 12


def test_a_clean_up_that_an_interrupt_left_waiting_touches_nothing_of_the_next_call(
    llm: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second Ctrl-C comes while the first one's clean-up waits for the thread: it runs amid the next call."""
    right = llm.generate(PROMPTS, GREEDY)
    execute, waiting = llm.core.executor.execute, list[Callable[[], object]]()

    def interrupted(_sequences: object) -> object:
        raise KeyboardInterrupt

    def interrupted_again(work: Callable[[], object]) -> object:
        waiting.append(work)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(llm.core.executor, "execute", interrupted)
        patch.setattr("quantgate_engine.llm.on_compute_thread", interrupted_again)
        with pytest.raises(KeyboardInterrupt):
            llm._run([("left", (7, 8), GREEDY)])
    [clean_up] = waiting

    def late(sequences: object) -> object:
        while waiting:
            waiting.pop()
            clean_up()
        return execute(sequences)

    monkeypatch.setattr(llm.core.executor, "execute", late)
    answers = llm.generate(PROMPTS, GREEDY)

    assert not waiting
    assert [answer.token_ids for answer in answers] == [answer.token_ids for answer in right]
    assert llm.core.held_blocks == 0
