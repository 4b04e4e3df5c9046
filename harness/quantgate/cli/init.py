"""`quantgate init`: writes a suite, a policy and a CI job for your model, log and servers."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.prompt import Prompt as RichPrompt
from rich.text import Text

from quantgate_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from quantgate.setup_files.answers import Answers, Flags

_SERVERS = "Your servers"
_BUNDLED = "The bundled engine"


def init(
    model: Annotated[
        str | None, typer.Option(help="Model of the bundled engine; with servers, its name there.")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Request log or trace to replay.")] = None,
    columns: Annotated[Path | None, typer.Option(help="Column map of the log (YAML).")] = None,
    baseline: Annotated[
        str | None, typer.Option(help="URL or ID=URL of the baseline.", rich_help_panel=_SERVERS)
    ] = None,
    candidate: Annotated[
        list[str] | None, typer.Option(help="URL or ID=URL of a candidate (repeatable).", rich_help_panel=_SERVERS)
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Their tokenizer: known model, folder or Hub id.", rich_help_panel=_SERVERS)
    ] = None,
    key_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds the key.", rich_help_panel=_SERVERS)
    ] = None,
    schemes: Annotated[
        str | None, typer.Option(help="Precisions, the baseline's first.", rich_help_panel=_BUNDLED)
    ] = None,
    policy: Annotated[str | None, typer.Option(help="chat, batch, mixed or ci.")] = None,
    ci: Annotated[Literal["github", "gitlab", "none"] | None, typer.Option(help="Which CI job to write.")] = None,
    undecided: Annotated[
        Literal["fail", "pass"], typer.Option(help="What the CI job does where evidence is not enough (exit code 4).")
    ] = "fail",
    folder: Annotated[Path, typer.Option("--dir", help="Folder of the project.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: flags and defaults.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the paths written as JSON; asks nothing.")] = False,
) -> None:
    """Write a suite, a policy and a CI job for your model, log and servers, from a few questions or from flags.

    Example: quantgate init --baseline http://fp16:8000 --candidate http://int4:8000 --log access.jsonl --policy chat
    """
    from quantgate.setup_files.answers import Flags, split_list
    from quantgate.setup_files.ci_systems import CI_SYSTEMS, NO_CI
    from quantgate.setup_files.log_check import check_log
    from quantgate.setup_files.project import Project
    from quantgate.setup_files.project_files import project_files
    from quantgate.setup_files.write_files import write_files

    flags = Flags(
        model=model, log=log, baseline=baseline, candidates=tuple(candidate or ()), tokenizer=tokenizer,
        schemes=split_list(schemes or ""), key_variable=key_env, policy=policy,
    )  # fmt: skip
    asks = _somebody_is_there() and not (yes or json_output)
    answers = _answers(flags, asks)
    chosen_ci = ci or (_Terminal().choice("CI job", (*CI_SYSTEMS, NO_CI), default="github") if asks else "github")
    check_log(answers.log, columns)
    project = Project(folder, answers.arms, answers.log, columns, answers.policy, undecided)
    files = project_files(project, chosen_ci)
    write_files(files, force=force)
    if json_output:
        typer.echo(json.dumps({"written": [str(path) for path in files]}, indent=2))
        return
    console = Console(stderr=True, soft_wrap=True)
    for path in files:
        console.print(Text(f"written: {path}"))
    console.print(Text(f"next:    quantgate run {project.suite_path}"))


def _answers(flags: Flags, asks: bool) -> Answers:
    from quantgate.setup_files.answers import complete
    from quantgate.setup_files.prompt import Nobody

    if asks:
        return complete(flags, _Terminal())
    nobody = Nobody()
    answers = complete(flags, nobody)
    nobody.refuse_gaps()
    return answers


def _somebody_is_there() -> bool:
    return sys.stdin.isatty()


class _Terminal:
    """Asks on the terminal, on standard error, until there is an answer."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, soft_wrap=True)

    def text(self, question: str, /, *, flag: str, default: str | None = None) -> str:
        while True:
            answer = self._ask(question, default=default or "", show_default=default is not None)
            if answer.strip():
                return answer.strip()
            self._console.print(Text(f"An answer is needed here (or the flag {flag})."))

    def choice(self, question: str, choices: Sequence[str], /, *, default: str) -> str:
        return self._ask(question, default=default, choices=list(choices))

    def _ask(self, question: str, *, default: str, choices: list[str] | None = None, show_default: bool = True) -> str:
        try:
            return RichPrompt.ask(
                question, console=self._console, default=default, choices=choices, show_default=show_default
            )
        except EOFError:
            raise ConfigurationError(
                f"The input ended at the question {question!r}; answer it, or give the answers as flags."
            ) from None
