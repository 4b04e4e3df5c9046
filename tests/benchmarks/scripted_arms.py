"""Arms on the scripted engine, and results that were never measured."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.arms import WORKER, Arm
from benchmarks.peers.catalog import CataloguedEngine
from benchmarks.peers.description import EngineDescription, Precision, Widths
from benchmarks.peers.noise import Noise
from benchmarks.peers.rounds import ArmResult, BatchTurn, Settings, SingleTurn
from benchmarks.peers.worker_process import WorkerProcess
from benchmarks.peers.workload import Workload
from tests.benchmarks import scripted_engine

ADAPTER = Path(scripted_engine.__file__)
WORKLOAD = Workload(
    single_prompt=[5, 6, 7], single_tokens=11, batch_prompts=[[1], [2, 3], [4, 5]], batch_tokens=4, active=2
)
QUIET = Noise(0.0, 0.0, {})
WIDTHS = Widths("16 bits", "bfloat16", "16 bits", "bfloat16")


def scripted_arm(precision: str) -> Arm:
    description = scripted_engine.DESCRIPTION
    return Arm(CataloguedEngine(description, ADAPTER), description.precision(precision))


def start_scripted(arm: Arm, folder: Path) -> WorkerProcess:
    command = [sys.executable, "-P", str(WORKER), str(arm.engine.adapter)]
    return WorkerProcess(arm.name, command, dict(os.environ), folder / f"{arm.precision.name}.log")


def settings(rounds: int = 1) -> Settings:
    cpus = sorted(os.sched_getaffinity(0))[:1]
    return Settings(WORKLOAD, rounds, threads=1, cpus=cpus, models="models", timeout_s=60.0)


def made_up(
    engine: str, precision: str, bits: int, turns: Sequence[tuple[float, float, float]], failure: str | None = None
) -> ArmResult:
    """turns: of each lap and round, milliseconds to the first token, decode tokens/s, batch output tokens/s."""
    description = EngineDescription(engine, None, (), (Precision(precision, bits, WIDTHS),))
    return ArmResult(
        arm=Arm(CataloguedEngine(description, ADAPTER), description.precisions[0]),
        widths=WIDTHS,
        load_s=1.0,
        peak_rss_mib=100.0,
        singles=[SingleTurn(ttft_ms, decode_tok_s, QUIET) for ttft_ms, decode_tok_s, _ in turns],
        batches=[BatchTurn(batch_tok_s, QUIET) for _, _, batch_tok_s in turns],
        single_ids=[1, 2, 3],
        batch_ids=[[1, 2], [3, 4]],
        failure=failure,
    )
