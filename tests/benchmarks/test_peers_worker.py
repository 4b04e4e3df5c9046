"""A worker's protocol, and what becomes of engines that fail: each in one sentence, at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
from benchmarks.peers.arms import WORKER
from benchmarks.peers.worker_process import WorkerError, WorkerProcess
from tests.benchmarks.scripted_arms import ADAPTER, WORKLOAD, scripted_arm, settings, start_scripted

TIMEOUT_S = 60.0


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[WorkerProcess]]:
    started: list[WorkerProcess] = []
    yield started
    for worker in started:
        worker.close()


def loaded(precision: str, folder: Path, workers: list[WorkerProcess]) -> WorkerProcess:
    worker = start_scripted(scripted_arm(precision), folder)
    workers.append(worker)
    load(worker, precision)
    return worker


def load(worker: WorkerProcess, precision: str) -> dict[str, object]:
    return worker.ask(
        "load",
        TIMEOUT_S,
        precision=precision,
        threads=1,
        cpus=list(settings().cpus),
        workload=asdict(WORKLOAD),
        models="models",
    )


def test_it_answers_each_command_with_ids_and_times(tmp_path: Path, workers: list[WorkerProcess]) -> None:
    worker = start_scripted(scripted_arm("fast"), tmp_path)
    workers.append(worker)
    answer = load(worker, "fast")
    assert answer["widths"] == {"weights": "16 bits", "activations": "16 bits", "head": "16 bits", "kv": "16 bits"}
    assert answer["versions"] == {"pytest": pytest.__version__}
    single = worker.ask("single", TIMEOUT_S, ids=[5, 6, 7], tokens=3)
    assert single["ids"] == [18, 19, 20]
    assert single["first_token_s"] == pytest.approx(0.1)
    assert single["total_s"] == pytest.approx(0.12)
    assert single["token_times_s"] is None
    batch = worker.ask("batch", TIMEOUT_S, prompts=[[1], [2, 3]], tokens=2)
    assert batch == {"ids": [[1, 2], [5, 6]], "total_s": pytest.approx(0.02)}
    assert worker.ask("quit", TIMEOUT_S)["peak_rss_mib"] > 1


def test_what_an_engine_prints_is_no_answer(tmp_path: Path, workers: list[WorkerProcess]) -> None:
    worker = loaded("chatty", tmp_path, workers)
    assert worker.ask("single", TIMEOUT_S, ids=[1], tokens=1)["ids"] == [1]
    printed = (tmp_path / "chatty.log").read_text()
    assert "not JSON" in printed
    assert "not Python's" in printed


def test_an_error_of_the_engine_is_one_sentence_and_the_worker_lives(
    tmp_path: Path, workers: list[WorkerProcess]
) -> None:
    worker = loaded("raises", tmp_path, workers)
    with pytest.raises(WorkerError) as error:
        worker.ask("single", TIMEOUT_S, ids=[1], tokens=1)
    log = tmp_path / "raises.log"
    assert str(error.value) == (
        f"scripted raises failed to single: RuntimeError: the cache is full; what it printed is in {log}"
    )
    assert "Traceback" in log.read_text()
    assert worker.ask("batch", TIMEOUT_S, prompts=[[1]], tokens=1)["ids"] == [[1]]


def test_nothing_is_asked_before_it_is_loaded(tmp_path: Path, workers: list[WorkerProcess]) -> None:
    worker = start_scripted(scripted_arm("fast"), tmp_path)
    workers.append(worker)
    with pytest.raises(WorkerError, match="nothing is loaded"):
        worker.ask("single", TIMEOUT_S, ids=[1], tokens=1)


def test_a_death_is_told_with_its_signal_and_last_words(tmp_path: Path, workers: list[WorkerProcess]) -> None:
    worker = loaded("dies-at-batch", tmp_path, workers)
    with pytest.raises(WorkerError, match=r"dies-at-batch died at batch \(signal 6: out of memory\)"):
        worker.ask("batch", TIMEOUT_S, prompts=[[1]], tokens=1)
    with pytest.raises(WorkerError, match="dies-at-batch has ended and cannot single"):
        worker.ask("single", TIMEOUT_S, ids=[1], tokens=1)


def test_a_silent_engine_is_ended(tmp_path: Path, workers: list[WorkerProcess]) -> None:
    worker = loaded("hangs-at-single", tmp_path, workers)
    with pytest.raises(WorkerError, match=r"no answer to single within 0\.2 s and was ended"):
        worker.ask("single", 0.2, ids=[1], tokens=1)
    assert not psutil.pid_exists(worker.pid)


def test_a_program_that_is_no_worker_is_told_apart(tmp_path: Path, workers: list[WorkerProcess]) -> None:
    echo = [sys.executable, "-c", "import sys\nfor line in sys.stdin: print('[1]', flush=True)"]
    worker = WorkerProcess("echo", echo, dict(os.environ), tmp_path / "echo.log")
    workers.append(worker)
    with pytest.raises(WorkerError, match="echo answered quit with what is no JSON object"):
        worker.ask("quit", TIMEOUT_S)
    with pytest.raises(WorkerError, match="nothing cannot be started: /no/such/python: No such file"):
        WorkerProcess("nothing", ["/no/such/python"], dict(os.environ), tmp_path / "nothing.log")


def test_a_paused_engine_stands_still_and_goes_on(tmp_path: Path, workers: list[WorkerProcess]) -> None:
    worker = loaded("fast", tmp_path, workers)
    worker.pause()
    process = psutil.Process(worker.pid)
    while process.status() != psutil.STATUS_STOPPED:
        pass
    worker.resume()
    assert worker.ask("single", TIMEOUT_S, ids=[1], tokens=1)["ids"] == [1]


def test_a_paused_worker_can_be_closed(tmp_path: Path, workers: list[WorkerProcess]) -> None:
    worker = loaded("fast", tmp_path, workers)
    worker.pause()
    worker.close()
    assert not psutil.pid_exists(worker.pid)


def test_the_repository_is_not_on_the_path_of_an_engine(tmp_path: Path) -> None:
    """Its folder `kernels/` would be found as the package for which transformers looks."""
    adapter = tmp_path / "adapter.py"
    adapter.write_text(
        "import importlib.util, sys\n"
        "from benchmarks.peers.workload import FILE\n"
        "print('kernels:', importlib.util.find_spec('kernels'), 'path:', sys.path, file=sys.stderr)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [sys.executable, "-P", "-S", str(WORKER), str(adapter)],
        input=json.dumps({"command": "quit"}) + "\n",
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert "kernels: None" in ended.stderr
    assert str(ADAPTER.parents[2]) + "'" not in ended.stderr
