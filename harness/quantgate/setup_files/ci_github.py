"""A GitHub Actions workflow."""

from __future__ import annotations

from pathlib import PurePosixPath

from quantgate.setup_files.ci_system import EXIT_CODES, CiSystem, run_command
from quantgate.setup_files.policy_text import as_yaml
from quantgate.setup_files.project import Project


def _text(project: Project) -> str:
    secrets = [f"          {name}: ${{{{ secrets.{name} }}}}" for name in project.arms.key_variables]
    return f"""\
# Judges the candidates of {project.suite_argument} and fails unless they may ship.
# Exit codes of quantgate run: {EXIT_CODES}.
name: quantgate
on:
  pull_request:
  workflow_dispatch:
permissions:
  contents: read
env:
  QUANTGATE_PACKAGE: quantgate # what pip installs: a version, a wheel, or git+https://...
  NOT_ENOUGH_EVIDENCE: {as_yaml(project.undecided)} # fail or pass: what exit code 4 does to the job
jobs:
  quantgate:
    runs-on: ubuntu-latest # a runner that reaches the servers, or has the device that you serve on
    timeout-minutes: 180
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - name: Install
        run: pip install "$QUANTGATE_PACKAGE"
      - name: Judge
        env:
          PYTHONUNBUFFERED: "1"
{"".join(f"{line}{chr(10)}" for line in secrets)}\
        run: |
          code=0
          {run_command(project)} || code=$?
          if [ "$code" = 4 ] && [ "$NOT_ENOUGH_EVIDENCE" = pass ]; then
            echo "::warning title=quantgate::Not enough evidence; the report says how much more is needed."
            code=0
          fi
          exit "$code"
      - name: Keep the report
        if: always()
        uses: actions/upload-artifact@v4
        with:
          name: quantgate-results
          path: results/
"""


GITHUB = CiSystem("github", PurePosixPath(".github/workflows/quantgate.yml"), _text)
