"""`quantgate review`: people judge answers, blinded, in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from quantgate_engine.counted import counted
from quantgate_engine.errors import ConfigurationError

EXPORT_SCHEMA = "quantgate.review-export/1"
IMPORT_SCHEMA = "quantgate.review-import/1"

review = typer.Typer(name="review", help="Have people judge answers of a run: export a queue, import it filled in.")

_RUN_HELP = "Folder of a run, such as results/20270131T101500Z-3f9c."


@review.command("export")
def export(
    run: Annotated[Path, typer.Argument(help=_RUN_HELP)],
    items: Annotated[int, typer.Option(min=1, help="Most pairs of answers in the queue.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, .yaml or .jsonl.")],
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of draw and order; default: the run's own.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Write pairs of answers for people to judge: no names, order by chance, the most urgent pairs first.

    Which answer is whose stays in the run's folder (review_key.json).

    Example: quantgate review export results/20270131T101500Z-3f9c --items 50 --out queue.yaml
    """
    from quantgate.judging.live_history import left_out_words
    from quantgate.judging.review.export_queue import export_queue
    from quantgate.judging.review.queue_file import queue_text
    from quantgate.judging.review.review_key import KEY_FILE, read_key
    from quantgate.judging.rows import table_of
    from quantgate.store.atomic_file import require_replaceable, write_text_atomically
    from quantgate.store.run_folder import RunFolder, load_run

    loaded = load_run(run)
    require_replaceable(out)
    if out.exists() and not force:
        raise ConfigurationError(f"--out is {out}, which is there already; name another file or add --force.")
    if not out.parent.is_dir():
        raise ConfigurationError(f"--out is {out}, but {out.parent} is no folder; make it or choose another.")
    earlier = read_key(run) if (run / KEY_FILE).is_file() else None
    exported = export_queue(loaded, items, loaded.manifest.seed if seed is None else seed, earlier)
    text = queue_text(out, exported.queue)
    folder = RunFolder(run, loaded.manifest.run_id)
    folder.write_text(KEY_FILE, exported.key.model_dump_json(by_alias=True, indent=2) + "\n")
    if exported.rows:
        folder.write_table("judgements", table_of([*loaded.judgements.to_pylist(), *exported.rows]))
    write_text_atomically(out, text)
    count = len(exported.queue.items)
    for line in [f"{counted(count, 'pair')} to review: {out}", *left_out_words(exported.later_turns)]:
        Console(stderr=True).print(line, markup=False, highlight=False, soft_wrap=True)
    if json_output:
        counts = {"items": count, "later_turns_left_out": exported.later_turns}
        typer.echo(json.dumps({"schema": EXPORT_SCHEMA, "queue": str(out)} | counts))


@review.command("import")
def import_(
    run: Annotated[Path, typer.Argument(help=_RUN_HELP)],
    queue: Annotated[Path, typer.Argument(help="The filled-in queue, .yaml or .jsonl.")],
    reviewer: Annotated[str, typer.Option(help="Name to keep beside the answers.")] = "reviewer",
    replace: Annotated[bool, typer.Option("--replace", help="Let answers stand against earlier ones.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Take a filled-in queue into the run; people's answers stand above the judge's. Then: quantgate gate RUN.

    Nothing is taken from a file with a mistake in it.

    Example: quantgate review import results/20270131T101500Z-3f9c queue.yaml --reviewer anna
    """
    from quantgate.judging.review.import_queue import import_reviews
    from quantgate.judging.review.queue_file import read_queue
    from quantgate.judging.review.review_key import read_key
    from quantgate.judging.rows import table_of
    from quantgate.store.run_folder import RunFolder, load_run

    loaded = load_run(run)
    run_id, filed = read_queue(queue)
    imported = import_reviews(
        run_id, read_key(run), filed, loaded.judgements.to_pylist(), reviewer=reviewer, replace=replace
    )
    if imported.new:
        RunFolder(run, loaded.manifest.run_id).write_table("judgements", table_of(imported.rows))
    counts = {"new": imported.new, "unchanged": imported.unchanged, "open": imported.open}
    if json_output:
        typer.echo(json.dumps({"schema": IMPORT_SCHEMA} | counts))
    else:
        typer.echo(
            f"{counted(imported.new, 'answer')} taken over, {imported.unchanged} known before, {imported.open} left "
            f"open. Judge the run with them: quantgate gate {run}"
        )
