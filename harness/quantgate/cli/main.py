"""The `quantgate` command: registers the commands and turns every failure into one sentence and its exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from asyncio import CancelledError
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from quantgate.cli.bench import bench
from quantgate.cli.command_group import CommandGroup
from quantgate.cli.compare import compare
from quantgate.cli.doctor import doctor
from quantgate.cli.fetch import fetch
from quantgate.cli.gate import gate
from quantgate.cli.init import init
from quantgate.cli.judge import judge
from quantgate.cli.lasting_output import lasting_output
from quantgate.cli.policy import policy_commands
from quantgate.cli.quantize import quantize
from quantgate.cli.replay import replay
from quantgate.cli.report import report
from quantgate.cli.review import review
from quantgate.cli.run import run
from quantgate.cli.serve import serve
from quantgate.cli.termination import INTERRUPTED, leave, termination_interrupts
from quantgate.cli.trace import trace_commands
from quantgate_engine.errors import ConfigurationError, QuantgateError

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_SUCH_PLACE = frozenset({errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ELOOP})
"""A path of the user's that cannot even be looked at, in whichever argument or file it stands."""
EXIT_CODES = """Exit codes: 0 ship, 1 regression (do not ship), 2 usage or configuration, 3 the run failed or its
load was not delivered, 4 not enough evidence, 5 baseline missing or not comparable, 130 interrupted
(Ctrl-C, SIGTERM)."""

app = typer.Typer(
    name="quantgate",
    cls=CommandGroup,
    help="Replays recorded traffic against the FP16, INT8 and INT4 builds of a language model and says whether the "
    "quantized build may ship.",
    epilog=EXIT_CODES,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (init, run, bench, replay, compare, gate, judge, report, quantize, serve, fetch, doctor):
    app.command()(command)
app.add_typer(review)
app.add_typer(policy_commands)
app.add_typer(trace_commands)


@app.callback()
def _before_any_command(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    if show_version:
        typer.echo(f"quantgate {version('quantgate')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def main() -> NoReturn:
    """Runs the command line and ends the process with its exit code."""
    # Tokenizers warns about forks when a pool of its own is alive; the harness starts processes (pip, git).
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        with lasting_output(), termination_interrupts():
            exit_code = run_command()
    except KeyboardInterrupt:
        # A second one, while the first was being told.
        exit_code = INTERRUPTED
    leave(exit_code)


def run_command() -> int:
    """Runs the command that `sys.argv` asks for, tells what went wrong in one sentence, and returns the exit code."""
    try:
        _refuse_unreadable(sys.argv[1:])
        # The framework's own mode would end with 1, "do not ship", where standard input or output goes away.
        exit_code = int(app(standalone_mode=False, prog_name="quantgate") or 0)
        if sys.stdout is not None:
            # While a failure can still be told: an answer that nobody got is no verdict.
            sys.stdout.flush()
        return _told("Interrupted.", INTERRUPTED) if exit_code == INTERRUPTED else exit_code
    except QuantgateError as error:
        return _told(str(error), error.exit_code)
    # asyncio leaves the last one as it is where the signal comes between its taking the handler and its first step.
    except (KeyboardInterrupt, typer.Abort, CancelledError):
        return _told("Interrupted.", INTERRUPTED)
    except SystemExit as ending:
        if isinstance(ending.__context__, BrokenPipeError):
            return _unexpected(ending.__context__)
        raise
    except OSError as error:
        if error.errno in _NO_ROOM:
            where = error.filename or "while writing results"
            return _told(f"The disk is full ({where}); free some space and run again.", 3)
        if error.errno == errno.EROFS:
            where = error.filename or "where something was to be written"
            return _told(f"{where}: the file system is read-only; choose another folder.", 3)
        if error.errno in _NO_SUCH_PLACE and error.filename:
            return _told(f"{error.filename}: {error.strerror}; check the path and its permissions.", 2)
        return _unexpected(error)
    except Exception as error:  # noqa: BLE001 - the contract: no traceback reaches the user, exit code 3
        return _unexpected(error)


def _refuse_unreadable(arguments: list[str]) -> None:
    """Results repeat the command line, and files in UTF-8 cannot hold bytes that are none."""
    for number, argument in enumerate(arguments, start=1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            readable = argument.encode(errors="backslashreplace").decode()
            raise ConfigurationError(
                f"Argument {number}, {readable}, holds bytes that are not UTF-8; rename the file, or write it anew."
            ) from None


def _unexpected(error: Exception) -> int:
    if os.environ.get("QUANTGATE_DEBUG"):
        traceback.print_exception(error)
    return _told(
        f"Unexpected {type(error).__name__}: {error}. This is a fault of quantgate; set QUANTGATE_DEBUG=1 for the "
        "traceback and report it.",
        3,
    )


def _told(sentence: str, exit_code: int) -> int:
    Console(stderr=True, soft_wrap=True).print(
        f"quantgate: {sentence}", markup=False, highlight=False, style="bold red"
    )
    return exit_code
