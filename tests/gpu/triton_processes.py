"""Python processes with one of the versions of Triton that the kernels are tested with."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = "installed"
OLDEST = "oldest"
OLDEST_FOLDER = "QUANTGATE_OLDEST_TRITON"
"""Environment variable with the folder of the oldest version: `pip install --no-deps --target FOLDER triton==3.6.0`."""

MISSING = {
    INSTALLED: None if importlib.util.find_spec("triton") else "no Triton here",
    OLDEST: None if OLDEST_FOLDER in os.environ else f"{OLDEST_FOLDER} is not set",
}
"""Why tests with a version cannot run, or None where they can."""

TRITONS = [
    pytest.param(version, marks=pytest.mark.skipif(reason is not None, reason=str(reason)))
    for version, reason in MISSING.items()
]


def run_python(arguments: Sequence[str], triton: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Of the same interpreter, in the project's root, with the project's own sources first."""
    variables = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    folders = [str(ROOT / name) for name in ("harness", "engine", "kernels")]
    if triton == OLDEST:
        folders.insert(0, os.environ[OLDEST_FOLDER])
    variables.update(PYTHONPATH=os.pathsep.join(folders), OMP_NUM_THREADS="1", **environment)
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=variables, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
