"""The compute thread where a process begins or ends: in forked children, after the main thread, in exit handlers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.engine.tiny_folder import save_tiny_folder

from quantgate_engine.errors import RunError
from quantgate_engine.executor.compute_thread import on_compute_thread
from quantgate_engine.executor.fork_lock import ForkLock
from quantgate_engine.executor.worker_thread import WorkerThread

LIMIT_S = 120

_LOAD = """
import atexit, os, signal, sys, threading
from quantgate_engine import LLM, SamplingParams
from quantgate_engine.errors import RunError

llm = LLM(sys.argv[1], "fp32", num_kv_blocks=64, threads=2, kernel_set="reference")

def answer():
    return llm.generate([list(range(3, 90))], SamplingParams(max_tokens=6, ignore_eos=True))[0].token_ids

want = answer()

def again():
    print(answer() == want)

def later():
    threading.main_thread().join()
    again()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_folder(tmp_path_factory.mktemp("tiny"))


def _run(program: str, folder: Path, tmp_path: Path) -> str:
    environment = os.environ | {"QUANTGATE_CACHE": str(tmp_path / "cache")}
    result = subprocess.run(
        [sys.executable, "-c", _LOAD + program, str(folder)],
        env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout


def test_a_forked_child_generates_what_its_parent_does(folder: Path, tmp_path: Path) -> None:
    program = """
child = os.fork()
if child == 0:
    signal.alarm(60)  # A hang is to be a failure, and to leave nobody behind.
    os._exit(0 if answer() == want else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), answer() == want)
"""
    assert _run(program, folder, tmp_path) == "0 True\n"


def test_a_child_forked_amid_a_step_scores_and_is_told_why_it_cannot_generate(folder: Path, tmp_path: Path) -> None:
    program = """
import time
want = llm.logits(list(range(3, 90)))
long = SamplingParams(max_tokens=200, ignore_eos=True)
busy = threading.Thread(target=lambda: llm.generate([list(range(3, 90))], long))
busy.start()
while not llm.core.load.active_requests:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    signal.alarm(60)  # A hang is to be a failure, and to leave nobody behind.
    try:
        answer()
    except RunError as refused:
        print(refused, flush=True)
    os._exit(0 if (llm.logits(list(range(3, 90))) == want).all() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
busy.join()
"""
    assert _run(program, folder, tmp_path) == (
        "The engine was driven when this process was forked, and its requests are the parent's; load the model anew "
        "here, or fork while nothing drives it.\n0\n"
    )


def test_a_lock_that_another_thread_holds_is_free_in_a_child() -> None:
    lock = ForkLock()
    with lock:
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            with lock:
                os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_thread_that_outlives_the_main_thread_generates(folder: Path, tmp_path: Path) -> None:
    assert _run("threading.Thread(target=later).start()", folder, tmp_path) == "True\n"


def test_an_exit_handler_generates(folder: Path, tmp_path: Path) -> None:
    assert _run("atexit.register(again)", folder, tmp_path) == "True\n"


def test_an_exit_handler_that_comes_too_late_is_told_so() -> None:
    program = """
import atexit

def late():
    try:
        on_compute_thread(lambda: 7)
    except RunError as refusal:
        print(refusal)

atexit.register(late)
from quantgate_engine.errors import RunError
from quantgate_engine.executor.compute_thread import on_compute_thread
on_compute_thread(lambda: 7)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert done.stdout == (
        "The engine computes nothing more, because the program is ending; call it before the end, or in an exit "
        "handler that is registered after quantgate_engine was imported.\n"
    )
    assert done.stderr == ""


def test_what_was_handed_over_before_the_end_is_carried_out() -> None:
    worker = WorkerThread("worker")
    begun, go_on, outcomes = threading.Event(), threading.Event(), list[int]()

    def work() -> int:
        begun.set()
        assert go_on.wait(LIMIT_S)
        return 7

    caller = threading.Thread(target=lambda: outcomes.append(worker.run(work)))
    caller.start()
    assert begun.wait(LIMIT_S)
    closer = threading.Thread(target=worker.close)
    closer.start()
    while not worker.is_wanted:
        closer.join(0.001)
    with pytest.raises(RunError, match="the program is ending"):
        worker.run(lambda: 8)
    go_on.set()
    for thread in (caller, closer):
        thread.join(LIMIT_S)
    assert outcomes == [7]


def test_callers_that_come_first_at_once_share_one_thread() -> None:
    barrier, idents = threading.Barrier(4), list[int]()

    def call() -> None:
        barrier.wait(LIMIT_S)
        idents.append(worker.run(threading.get_ident))

    for _ in range(20):
        worker = WorkerThread("worker")
        callers = [threading.Thread(target=call) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(LIMIT_S)
        worker.close()
        assert len(set(idents)) == 1
        idents.clear()


def test_a_result_is_the_callers_alone() -> None:
    class Large:
        pass

    large = on_compute_thread(Large)
    assert sys.getrefcount(large) == 2
