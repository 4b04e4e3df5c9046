"""All files of a project's set-up."""

from __future__ import annotations

from pathlib import Path

from quantgate.setup_files.ci_systems import CI_SYSTEMS
from quantgate.setup_files.project import Project
from quantgate.setup_files.suite_text import project_policy_text, suite_text


def project_files(project: Project, ci: str) -> dict[Path, str]:
    """Path -> text: suite, policy, and the job of that CI system where there is one of that name.

    Raises ConfigurationError where the answers do not make a suite.
    """
    files = {project.suite_path: suite_text(project), project.policy_path: project_policy_text(project)}
    if ci in CI_SYSTEMS:
        system = CI_SYSTEMS[ci]
        files[project.folder / system.path] = system.text(project)
    return files
