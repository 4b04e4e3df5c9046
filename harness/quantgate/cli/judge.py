"""`quantgate judge`: have a model compare the answers of a stored run that no checker can judge."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from quantgate.cli.flag_values import finite, settings_from_flags
from quantgate.progress import ProgressReporter
from quantgate_engine.errors import ConfigurationError, RunError

if TYPE_CHECKING:
    from quantgate.judging.judge_run import PreparedJudging
    from quantgate.judging.judging_session import SessionOutcome
    from quantgate.store.run_folder import RunFolder
    from quantgate.targets.openai.settings import EndpointSettings

_CONFIDENCE = 0.95


def judge(
    run: Annotated[Path, typer.Argument(help="Folder of a run, such as results/20270131T101500Z-3f9c.")],
    endpoint: Annotated[str, typer.Option(metavar="URL", help="Root of an OpenAI-compatible server.")],
    model: Annotated[str, typer.Option(metavar="NAME", help="The judging model, as the server calls it.")],
    items: Annotated[int, typer.Option(min=1, help="Requests to draw; every arm is compared on the same ones.")],
    budget_requests: Annotated[int, typer.Option(min=1, help="Most calls of this judge on this run, in all commands.")],
    budget_tokens: Annotated[int, typer.Option(min=1, help="Most tokens, prompts and replies together.")],
    price_in: Annotated[
        float | None, typer.Option(min=0.0, help="Price per million prompt tokens.", callback=finite)
    ] = None,
    price_out: Annotated[
        float | None, typer.Option(min=0.0, help="Price per million reply tokens.", callback=finite)
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=16, help="Longest reply; reasoning models need more.")] = 256,
    call_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Longest wait for one reply.", callback=finite)
    ] = 120.0,
    key_env: Annotated[str, typer.Option(help="Environment variable that holds the API key.")] = "OPENAI_API_KEY",
    extra_body: Annotated[
        str | None, typer.Option(metavar="JSON", help="Laid over each request; null takes a field away.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the draw; default: the run's own.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Drop the judgements of another model.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Compare the arms' answers by a blinded judge: both orders of every pair, calibrated on A/A, within a budget.

    Shows what it will cost and asks. What is judged is kept in the run's folder, is not paid for again, and counts for
    the policy rule `preference`: quantgate gate RUN.

    Example: quantgate judge results/20270131T101500Z-3f9c --endpoint https://api.example.com --model judge --items 100
    --budget-requests 500 --budget-tokens 1000000 --price-in 0.15 --price-out 0.60
    """
    from quantgate.judging.cost import Prices
    from quantgate.judging.judge_run import JudgingOrder, prepare
    from quantgate.judging.pair_verdicts import judged_pairs
    from quantgate.judging.session_words import (
        cost_statement,
        failure_words,
        outcome_lines,
        record_words,
        summary_lines,
    )
    from quantgate.judging.summary import summarize
    from quantgate.judging.summary_document import judging_document
    from quantgate.store.run_folder import RunFolder, load_run

    settings = _settings(endpoint, model, key_env, call_timeout, extra_body)
    if (price_in is None) != (price_out is None):
        raise ConfigurationError("--price-in and --price-out belong together; give both or neither.")
    prices = Prices(price_in, price_out) if price_in is not None and price_out is not None else None
    loaded = load_run(run)
    drawn_with = loaded.manifest.seed if seed is None else seed
    order = JudgingOrder(model, items, budget_requests, budget_tokens, max_tokens, drawn_with, replace)
    prepared = prepare(loaded, order)
    console = Console(stderr=True, soft_wrap=True)
    reporter = ProgressReporter(console)
    for line in cost_statement(prepared, prices):
        reporter.note(line)
    if prepared.plan.to_ask:
        reporter.note(f"Requests and answers, as the run keeps them, are sent to {settings.url}.")
        _ask(agreed=yes)
    outcome = _carry_out(prepared, settings, RunFolder(run, loaded.manifest.run_id), reporter)
    judged = load_run(run)
    summary = summarize(judged, _CONFIDENCE)
    for line in outcome_lines(outcome):
        reporter.note(line)
    others = record_words(prepared, {pair.key for pair in judged_pairs(judged.judgements)})
    if others is not None:
        reporter.note(others)
    if summary is not None and json_output:
        document = judging_document(loaded.manifest.run_id, prepared, outcome, summary, prices)
        typer.echo(json.dumps(document, indent=2))
    elif summary is not None:
        for line in summary_lines(summary, prices):
            typer.echo(line)
    if (failed := failure_words(prepared, outcome)) is not None:
        raise RunError(failed)


def _carry_out(
    prepared: PreparedJudging, settings: EndpointSettings, folder: RunFolder, reporter: ProgressReporter
) -> SessionOutcome:
    from quantgate.judging.judge_client import JudgeClient
    from quantgate.judging.judge_run import judge_pairs
    from quantgate.targets.openai.endpoint import Endpoint

    order = prepared.order

    async def carry_out() -> SessionOutcome:
        async with Endpoint(settings) as endpoint:
            client = JudgeClient(endpoint, order.model, order.max_tokens, settings.extra_body)
            with reporter.phase("judge", len(prepared.plan.pairs)) as advance:
                return await judge_pairs(prepared, client, folder, lambda done: advance(done, ""), reporter.note)

    return asyncio.run(carry_out())


def _settings(url: str, model: str, key_env: str, call_timeout_s: float, extra_body: str | None) -> EndpointSettings:
    from quantgate.targets.openai.settings import EndpointSettings

    values: dict[str, Any] = {"url": url, "model": model, "key_env": key_env, "read_timeout_s": call_timeout_s}
    if extra_body is not None:
        try:
            values["extra_body"] = json.loads(extra_body)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"--extra-body is no JSON ({error}); expected an object of fields.") from None
    return settings_from_flags(EndpointSettings, values, {"url": "--endpoint", "read_timeout_s": "--call-timeout"})


def _ask(*, agreed: bool) -> None:
    if agreed:
        return
    if not sys.stdin.isatty():
        raise ConfigurationError("Judging costs what is stated above; add --yes to agree, since nobody can be asked.")
    if not typer.confirm("Go ahead?", err=True):
        raise typer.Exit(0)
