"""A GitLab CI job."""

from __future__ import annotations

from pathlib import PurePosixPath

from quantgate.setup_files.ci_system import EXIT_CODES, CiSystem, run_command
from quantgate.setup_files.project import Project, Undecided

_ALLOWED: dict[Undecided, str] = {
    "fail": "false # or {exit_codes: [4]}: not enough evidence is a warning then",
    "pass": "{exit_codes: [4]} # not enough evidence is a warning; or false: it fails",
}


def _text(project: Project) -> str:
    keys = [f"# {name} is a masked CI/CD variable of the project.\n" for name in project.arms.key_variables]
    return f"""\
# Judges the candidates of {project.suite_argument} and fails unless they may ship.
# Exit codes of quantgate run: {EXIT_CODES}.
{"".join(keys)}\
quantgate:
  stage: test
  image: python:3.12 # has the C++ compiler that the bundled engine's kernels are built with
  timeout: 3h
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_PIPELINE_SOURCE == "web"
  variables:
    QUANTGATE_PACKAGE: quantgate # what pip installs: a version, a wheel, or git+https://...
  before_script:
    - pip install "$QUANTGATE_PACKAGE"
  script:
    - {run_command(project)}
  allow_failure: {_ALLOWED[project.undecided]}
  artifacts:
    when: always
    paths:
      - results/
    expire_in: 4 weeks
"""


GITLAB = CiSystem("gitlab", PurePosixPath(".gitlab-ci.yml"), _text)
