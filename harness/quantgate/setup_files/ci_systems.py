"""The CI systems that a job can be written for. A new one: its file, and a place in this list."""

from __future__ import annotations

from quantgate.setup_files.ci_github import GITHUB
from quantgate.setup_files.ci_gitlab import GITLAB
from quantgate.setup_files.ci_system import CiSystem

CI_SYSTEMS: dict[str, CiSystem] = {system.name: system for system in (GITHUB, GITLAB)}
NO_CI = "none"
