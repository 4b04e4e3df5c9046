"""What a system of continuous integration is here: a name, a file, and the job that runs the suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from quantgate.setup_files.project import Project

EXIT_CODES = "0 ship, 1 do not ship, 2 configuration, 3 the run failed, 4 not enough evidence, 5 no comparable baseline"


@dataclass(frozen=True, slots=True)
class CiSystem:
    """path: the job's file inside the project. text: what it says."""

    name: str
    path: PurePosixPath
    text: Callable[[Project], str]


def run_command(project: Project) -> str:
    """Artifacts of a job are read by many: no prompt or answer goes into them."""
    return f"quantgate run {project.suite_argument} --results results --no-text"
