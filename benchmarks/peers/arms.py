"""What is compared: an engine with one build of the model each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.catalog import ENGINES, OWN, CataloguedEngine
from benchmarks.peers.description import Precision
from benchmarks.peers.peers_folder import PeersFolder
from benchmarks.peers.worker_process import WorkerError, WorkerProcess

WORKER = Path(__file__).with_name("worker.py")
NOT_FOR_PEERS = ("PYTHONPATH", "PYTHONHOME")


@dataclass(frozen=True, slots=True)
class Arm:
    engine: CataloguedEngine
    precision: Precision

    @property
    def name(self) -> str:
        return f"{self.engine.name} {self.precision.name}"

    @property
    def is_own(self) -> bool:
        return self.engine.name == OWN


def arms_of_width(bits: int, engines: Sequence[str], schemes: Sequence[str]) -> list[Arm]:
    """quantgate's `schemes` first, then every build of this width that the other engines have."""
    own = ENGINES[OWN]
    arms = [Arm(own, own.description.precision(scheme)) for scheme in schemes if OWN in engines]
    for name in engines:
        if name != OWN:
            engine = ENGINES[name]
            arms += [Arm(engine, precision) for precision in engine.description.precisions if precision.bits == bits]
    return arms


def start_arm(arm: Arm, folder: PeersFolder, threads: int) -> WorkerProcess:
    """A worker for the arm, with nothing loaded yet. Raises WorkerError where its engine is not set up."""
    python = folder.python(arm.engine.description)
    if not python.exists():
        raise WorkerError(
            f"{arm.name} is left out: {python} is missing; "
            f"set it up with: python benchmarks/peers/set_up.py --only {arm.engine.name}"
        )
    # -P: the folder of worker.py is kept off the path, where its modules could stand in for an engine's own.
    command = [str(python), "-P", str(WORKER), str(arm.engine.adapter)]
    log = folder.logs / f"run-{arm.name.replace(' ', '-')}.log"
    return WorkerProcess(arm.name, command, variables(threads, own=arm.is_own), log)


def variables(threads: int, own: bool) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if own or name not in NOT_FOR_PEERS}
    return inherited | {
        "OMP_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
        # Everything has been fetched: an engine that looks for news would measure the network.
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
