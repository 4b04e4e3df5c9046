"""`quantgate run`: the main job, on a suite or on servers and a log."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from quantgate.cli.flag_groups import takes_flag_groups
from quantgate.cli.flag_values import settings_from_flags
from quantgate.cli.traffic_flags import LOAD_FLAGS, TrafficFlags
from quantgate.progress import ProgressReporter
from quantgate_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from quantgate_engine.quant.perturbation import WeightPerturbation

DEFAULT_RESULTS = Path("results")
DEFAULT_SUITE = "quick"
_SERVERS = "Servers instead of a suite"
_TRAFFIC = "Traffic of the servers"


_ONLY_WITH_SERVERS = frozenset(
    {
        "tokenizer", "api", "key_env", "launch_baseline", "launch_candidate", "one_at_a_time", "log", "log_format",
        "columns", "no_redact", "other_parts", "block_tokens", "history", "output_lengths", "spread_ticks", "window",
        "speed", "thin", "max_prompt_tokens", "max_output_tokens", "clip_policy", "limit", "sample", "arrivals",
        "rate_cap", "clients", "client_think", "load_processes", "blocks", "passes", "request_timeout", "quality_items",
    }
)  # fmt: skip


@takes_flag_groups
def run(
    context: typer.Context,
    suite: Annotated[str | None, typer.Argument(help="Suite file or bundled suite; default: quick.")] = None,
    *,
    policy: Annotated[str | None, typer.Option(help="Policy file or name; default: the suite's own.")] = None,
    model: Annotated[str | None, typer.Option(help="Another model than the suite's; with servers, theirs.")] = None,
    schemes: Annotated[
        str | None, typer.Option(help="Builds of the suite's model for arms, the baseline's first (commas).")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Another seed than the suite's.")] = None,
    results: Annotated[Path, typer.Option(help="Folder that the run's folder is made in.")] = DEFAULT_RESULTS,
    no_text: Annotated[bool, typer.Option("--no-text", help="Keep prompts and answers out of the results.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print verdict.json on standard output.")] = False,
    may_differ: Annotated[
        list[str] | None, typer.Option(help="Property that arms may differ in, such as model (repeatable).")
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="URL of the baseline.", rich_help_panel=_SERVERS)] = None,
    candidate: Annotated[
        list[str] | None, typer.Option(help="URL or ID=URL of a candidate (repeatable).", rich_help_panel=_SERVERS)
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="The servers' tokenizer: known model, folder or Hub id.", rich_help_panel=_SERVERS),
    ] = None,
    api: Annotated[
        Literal["auto", "chat", "completions"], typer.Option(help="Which API is replayed.", rich_help_panel=_SERVERS)
    ] = "auto",
    key_env: Annotated[
        str, typer.Option(help="Environment variable that holds the key.", rich_help_panel=_SERVERS)
    ] = "OPENAI_API_KEY",
    launch_baseline: Annotated[
        str | None, typer.Option(help="Command that starts the baseline's server.", rich_help_panel=_SERVERS)
    ] = None,
    launch_candidate: Annotated[
        list[str] | None, typer.Option(help="The same for each candidate, in order.", rich_help_panel=_SERVERS)
    ] = None,
    one_at_a_time: Annotated[
        bool, typer.Option("--one-at-a-time", help="The device holds one server.", rich_help_panel=_SERVERS)
    ] = False,
    log: Annotated[Path | None, typer.Option(help="Request log or trace to replay.", rich_help_panel=_TRAFFIC)] = None,
    log_format: Annotated[
        str | None, typer.Option("--format", help="Its reader; default: by the first line.", rich_help_panel=_TRAFFIC)
    ] = None,
    columns: Annotated[
        Path | None, typer.Option(help="Column map of the log (YAML).", rich_help_panel=_TRAFFIC)
    ] = None,
    no_redact: Annotated[
        bool, typer.Option("--no-redact", help="Keep personal data that is recognised.", rich_help_panel=_TRAFFIC)
    ] = False,
    other_parts: Annotated[
        Literal["refuse", "drop"], typer.Option(help="Images in messages and the like.", rich_help_panel=_TRAFFIC)
    ] = "refuse",
    block_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens in a block of a Mooncake trace.", rich_help_panel=_TRAFFIC)
    ] = None,
    history: Annotated[
        Literal["recorded", "live"], typer.Option(help="Whose answers later turns see.", rich_help_panel=_TRAFFIC)
    ] = "recorded",
    output_lengths: Annotated[
        Literal["auto", "forced", "natural"], typer.Option(help="Who ends an answer.", rich_help_panel=_TRAFFIC)
    ] = "auto",
    traffic: TrafficFlags,
    load_processes: Annotated[
        int,
        typer.Option(min=1, max=256, help="Processes that send it, each a part.", rich_help_panel=_TRAFFIC),
    ] = 1,
    blocks: Annotated[
        int | None,
        typer.Option(min=1, help="Counterbalanced blocks of a pass; default: 4 at most.", rich_help_panel=_TRAFFIC),
    ] = None,
    passes: Annotated[
        int | None,
        typer.Option(min=1, help="Times each arm sees it all; default: 1, one at a time 2.", rich_help_panel=_TRAFFIC),
    ] = None,
    request_timeout: Annotated[
        float | None, typer.Option(help="Seconds that a client waits.", rich_help_panel=_TRAFFIC)
    ] = None,
    quality_items: Annotated[
        int | None,
        typer.Option(min=0, help="Task items put to each arm; default: 70.", rich_help_panel=_TRAFFIC),
    ] = None,
    plant_weight_noise: Annotated[
        str | None, typer.Option(hidden=True, help="ARM=SIGMA: plant weight noise, to test the verdict.")
    ] = None,
) -> None:
    """Replay traffic against each arm of a suite, compare speed and quality, and judge.

    Writes results/<run id>/ with report.html and verdict.json; the exit code is the verdict's.

    Example: quantgate run quick --policy mixed

    Example: quantgate run quick --schemes fp16,int4-g64,int4-g64-gptq

    Example: quantgate run --baseline http://fp16:8000 --candidate http://int4:8000 --log access.jsonl --policy chat
    """
    from quantgate.gate.policy import load_policy
    from quantgate.report.terminal import terminal_table
    from quantgate.resources import find_policy, find_suite, tasks_folder
    from quantgate.run.run_suite import run_suite
    from quantgate.run.server_suite import ServerArms, server_suite
    from quantgate.run.session import RunOptions
    from quantgate.run.usual_quality import USUAL_ITEMS
    from quantgate.suite import WorkloadConfig, load_suite

    if baseline is None and candidate is None:
        _refuse_flags_of_servers(context)
        loaded = load_suite(find_suite(suite or DEFAULT_SUITE)).with_changes(model=model, seed=seed)
        if schemes is not None:
            loaded = loaded.with_schemes([part.strip() for part in schemes.split(",") if part.strip()])
    else:
        if schemes is not None:
            raise ConfigurationError("--schemes names builds of a suite's model; servers have their own precisions.")
        if suite is not None or baseline is None or not candidate or log is None:
            raise ConfigurationError(
                "Servers are judged by --baseline URL, --candidate URL and --log FILE together, without a suite."
            )
        workload = settings_from_flags(
            WorkloadConfig,
            {
                "trace": str(log),
                "format": log_format,
                "columns": None if columns is None else str(columns),
                "redact": not no_redact,
                "other_parts": other_parts,
                "block_tokens": block_tokens,
                "history": history,
                "transforms": traffic.transforms(),
                "blocks": blocks or "auto",
                "passes": passes or (2 if one_at_a_time else 1),
                "output_lengths": output_lengths,
                **traffic.load(),
                "load_processes": load_processes,
                "request_timeout_s": request_timeout,
            },
            {
                "trace": "--log",
                "request_timeout_s": "--request-timeout",
                "load_processes": "--load-processes",
                **LOAD_FLAGS,
            },
        )
        servers = ServerArms(
            baseline=baseline,
            candidates=candidate,
            tokenizer=tokenizer,
            served_model=model,
            api=api,
            key_env=key_env,
            launch_baseline=launch_baseline,
            launch_candidates=launch_candidate or (),
            one_at_a_time=one_at_a_time,
        )
        loaded = server_suite(
            servers, workload, "chat" if policy is None else policy, seed=seed or 0,
            quality_items=USUAL_ITEMS if quality_items is None else quality_items,
        )  # fmt: skip
    chosen_policy = load_policy(
        find_policy(loaded.suite.policy if policy is None else policy, beside=loaded.path.parent)
    )
    chosen_policy = chosen_policy.allowing(may_differ or ())
    tasks = loaded.suite.quality.load_tasks(tasks_folder(loaded.path)) if loaded.suite.quality else []
    options = RunOptions(
        results=results,
        command=["quantgate", *sys.argv[1:]],
        keep_text=not no_text,
        perturbations=_perturbations(plant_weight_noise, loaded.suite.seed),
    )
    console = Console(stderr=True)
    finished = run_suite(loaded, chosen_policy, tasks, options, ProgressReporter(console))
    if json_output:
        typer.echo(finished.verdict.model_dump_json(by_alias=True, indent=2))
    else:
        terminal_table(finished.run, finished.verdict, Console())
        console.print(f"report: {finished.folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)
        console.print(f"again:  {shlex.join(options.command)}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(finished.verdict.exit_code)


def _refuse_flags_of_servers(context: typer.Context) -> None:
    """A flag that would change nothing is a mistake that the results would hide."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in _ONLY_WITH_SERVERS and source is not None and source.name == "COMMANDLINE":
            raise ConfigurationError(
                f"{parameter.opts[0]} needs --baseline and --candidate; what a suite replays stands in its file."
            )


def _perturbations(option: str | None, seed: int) -> dict[str, WeightPerturbation]:
    from quantgate_engine.quant.perturbation import WeightPerturbation

    if option is None:
        return {}
    arm_id, _, sigma = option.partition("=")
    try:
        return {arm_id: WeightPerturbation(relative_sigma=float(sigma), seed=seed)}
    except ValueError:
        raise ConfigurationError(
            f"--plant-weight-noise is {option!r}; expected ARM=SIGMA, such as int8-w8a16=0.1."
        ) from None
