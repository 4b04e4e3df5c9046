"""What a project that quantgate is set up for looks like: arms, traffic, policy, continuous integration."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from quantgate.locations import Location
from quantgate.setup_files.policy_text import as_yaml

FOLDER = "quantgate"
"""The folder inside the project that suite and policy are written to."""

Undecided = Literal["fail", "pass"]
"""What a CI job does where there is not enough evidence (exit code 4)."""


class ArmsSetup(Protocol):
    """One way to have arms: each kind writes its own part of the suite."""

    def suite_lines(self, project: Path) -> list[str]:
        """YAML lines of model, arms and engine; paths in them are relative to the project, where runs are started."""

    def workload_lines(self) -> list[str]:
        """YAML lines of the workload that depend on the kind of arms."""

    def policy_notes(self) -> list[str]:
        """What a reader of the policy file should know about such arms, without the comment sign."""

    def flag_of(self, location: Location) -> str | None:
        """The flag that this part of the suite came from; None where it came from none."""

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Environment variables that hold keys, which CI has to provide."""


@dataclass(frozen=True, slots=True)
class Project:
    """folder: where runs are started and CI checks out. log, columns: the traffic and its column map, as paths."""

    folder: Path
    arms: ArmsSetup
    log: Path
    columns: Path | None
    policy: str
    undecided: Undecided

    @property
    def suite_path(self) -> Path:
        return self.folder / FOLDER / "suite.yaml"

    @property
    def policy_path(self) -> Path:
        return self.folder / FOLDER / "policy.yaml"

    @property
    def suite_argument(self) -> str:
        """The suite as a command names it that is started in the project's folder."""
        return self.suite_path.relative_to(self.folder).as_posix()

    def beside_suite(self, path: Path) -> str:
        """A path as the suite writes it: relative to the suite's folder."""
        return as_yaml(Path(os.path.relpath(path.absolute(), self.suite_path.parent.absolute())).as_posix())


def inside_project(name_or_path: str, project: Path) -> str:
    """A known name as it is; the path of something that exists relative to the project's folder."""
    path = Path(name_or_path)
    return Path(os.path.relpath(path.absolute(), project.absolute())).as_posix() if path.exists() else name_or_path
