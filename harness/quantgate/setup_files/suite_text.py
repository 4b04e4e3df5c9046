"""The text of a project's suite and policy, valid before anything is written."""

from __future__ import annotations

import yaml
from pydantic import ValidationError

from quantgate.gate.policy import Policy
from quantgate.problem import first_problem
from quantgate.resources import find_policy
from quantgate.setup_files.project import Project
from quantgate.suite import Suite
from quantgate.validation import parse_yaml_model
from quantgate_engine.errors import ConfigurationError

_QUALITY_LINES = (
    "quality: # the numbers of the bundled suite quick; more items decide more",
    "  distribution: {sequences: 40, max_prompt_tokens: 256, max_answer_tokens: 24}",
    "  tasks:",
    "    rag: {limit: 12}",
    "    code: {limit: 16}",
    "    tool_calls: {limit: 10}",
    "    multi_turn: {limit: 12}",
    "    multiple_choice: {limit: 20}",
)


def suite_text(project: Project) -> str:
    """The suite file. Raises ConfigurationError where the answers do not make a suite."""
    columns = [] if project.columns is None else [f"  columns: {project.beside_suite(project.columns)}"]
    lines = [
        "# Which arms, which traffic, which quality items; docs/suites.md explains every field.",
        "schema: quantgate.suite/1",
        "name: project",
        "seed: 0",
        *project.arms.suite_lines(project.folder),
        "aa: true # the baseline against itself: the run's own noise",
        "workload:",
        f"  trace: {project.beside_suite(project.log)}",
        *columns,
        "  transforms: [] # such as {kind: window, start_s: 0, length_s: 600} or {kind: thin, keep: 0.5}",
        "  blocks: 4 # turns in which the arms are measured; 16 or more make the intervals see the machine's own noise",
        *project.arms.workload_lines(),
        *_QUALITY_LINES,
        "policy: policy.yaml",
    ]
    text = "\n".join(lines) + "\n"
    document = yaml.safe_load(text)
    try:
        Suite.model_validate(document)
    except ValidationError as error:
        problem = first_problem(error, document, Suite)
    else:
        return text
    flag = project.arms.flag_of(problem.location)
    raise ConfigurationError(f"{flag}: {problem.message}." if flag else problem.sentence("The answers make no suite"))


def project_policy_text(project: Project) -> str:
    """The ready policy's own text, with what its reader should know above it."""
    ready = find_policy(project.policy).read_text(encoding="utf-8")
    notes = [
        f"Started from the ready policy {project.policy}. `quantgate policy init RUN` takes SLO limits from a measured",
        "baseline; `quantgate policy check FILE` says in words what a policy asks for.",
        *project.arms.policy_notes(),
    ]
    text = "".join(f"# {note}\n" for note in notes) + ready
    parse_yaml_model(text, Policy, name=f"the ready policy {project.policy}")
    return text
