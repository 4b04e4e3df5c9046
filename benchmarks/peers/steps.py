"""Runs the steps of a peer's set-up, each once: a stamp tells what has been done from what."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from benchmarks.peers.description import EngineDescription, Step
from benchmarks.peers.peers_folder import PeersFolder

SCRIPTS = Path(__file__).with_name("preparation")
MAKE_ENVIRONMENT = (sys.executable, "-m", "venv", "--clear")

Tell = Callable[[str], None]


class SetUpError(Exception):
    """What failed and why, in one sentence."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The bundled model in the forms from which the peers' own are made, and its hash."""

    hf: Path
    gguf: Path
    sha256: str


def set_up_engines(
    engines: Sequence[EngineDescription], folder: PeersFolder, source: ModelSource, tell: Tell
) -> dict[str, bool]:
    """Whether each is ready now. One that fails says why, and the next is set up all the same."""
    ready = {}
    for engine in engines:
        try:
            set_up_engine(engine, folder, source, tell)
            tell(f"{engine.name}: ready")
        except SetUpError as error:
            tell(str(error))
            ready[engine.name] = False
        else:
            ready[engine.name] = True
    return ready


def set_up_engine(engine: EngineDescription, folder: PeersFolder, source: ModelSource, tell: Tell) -> None:
    """Makes the environment and takes the steps that have not been taken yet. Raises SetUpError."""
    if engine.environment is None:
        raise ValueError(f"{engine.name} has no environment of its own")
    steps = (
        Step("make environment", (*MAKE_ENVIRONMENT, str(folder.environment(engine.environment)))),
        *engine.steps,
    )
    words = {
        "python": str(folder.python(engine)),
        "folder": str(folder.path),
        "models": str(folder.models),
        "hf": str(source.hf),
        "gguf": str(source.gguf),
        "scripts": str(SCRIPTS),
    }
    before = source.sha256
    for step in steps:
        # A step is taken again when one before it was: what it worked on has changed.
        before = _fingerprint(step, before)
        stamp = folder.stamps / f"{engine.environment}-{step.name.replace(' ', '-')}.json"
        if _is_done(stamp, before, step, folder):
            continue
        tell(f"{engine.name}: {step.name}")
        started = time.monotonic()
        log = folder.logs / f"{stamp.stem}.log"
        stamp.unlink(missing_ok=True)
        _take(step, words, folder, log, engine.name)
        _write_stamp(stamp, before, time.monotonic() - started)


def _fingerprint(step: Step, before: str) -> str:
    digest = hashlib.sha256(json.dumps([before, step.command, sorted(step.variables.items())]).encode())
    for word in step.command:
        if word.startswith("{scripts}/"):
            digest.update((SCRIPTS / word.removeprefix("{scripts}/")).read_bytes())
    return digest.hexdigest()


def _is_done(stamp: Path, fingerprint: str, step: Step, folder: PeersFolder) -> bool:
    try:
        done = json.loads(stamp.read_text(encoding="utf-8"))["fingerprint"] == fingerprint
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return done and all((folder.path / path).exists() for path in step.produces)


def _write_stamp(stamp: Path, fingerprint: str, seconds: float) -> None:
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(json.dumps({"fingerprint": fingerprint, "seconds": round(seconds, 1)}) + "\n", encoding="utf-8")


def _take(step: Step, words: Mapping[str, str], folder: PeersFolder, log: Path, name: str) -> None:
    for path in step.produces:
        _remove(folder.path / path)
        (folder.path / path).parent.mkdir(parents=True, exist_ok=True)
    command = [word.format_map(words) for word in step.command]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as output:
        code = _run(command, dict(step.variables), output)
    missing = [path for path in step.produces if not (folder.path / path).exists()]
    if code != 0:
        raise SetUpError(f"{name}: {step.name} failed ({cause(log, code)}); its output is in {log}")
    if missing:
        raise SetUpError(
            f"{name}: {step.name} ended well and did not write {', '.join(missing)}; its output is in {log}"
        )


def _run(command: list[str], variables: dict[str, str], output: TextIO) -> int:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        return subprocess.run(
            command,
            env=environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    except OSError as error:
        output.write(f"ERROR: {command[0]} cannot be run: {error.strerror}\n")
        return 127


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def cause(log: Path, code: int) -> str:
    """The last line in which a program names an error, else its last line, else its exit code."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:") or "Error: " in line]
    return (errors or lines or [f"exit code {code}"])[-1].removeprefix("ERROR: ").rstrip(".")
