"""A comparison's document as tables on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.peers.figures import FIGURES
from rich.console import Console
from rich.table import Table

Document = Mapping[str, Any]

NOTABLE_CORES = 0.1
"""Of other processes; above it a figure is doubtful on two cores."""


def print_comparison(document: Document, console: Console) -> None:
    for bits, width in document["widths"].items():
        console.print(_arms(bits, width))
        console.print(_widths_of_parts(bits, width))
        for line in _remarks(width):
            console.print(line, markup=False, highlight=False)
    if document["quality"] is not None:
        console.print(_quality(document["quality"]))
    console.print(_bars(document))
    for bits, width in document["widths"].items():
        if width["counts_not_because"]:
            doubts = "; ".join(width["counts_not_because"])
            console.print(f"{bits} bits do not count: {doubts}.", markup=False, highlight=False)


def _arms(bits: str, width: Document) -> Table:
    table = Table(title=f"{bits} bits: medians, (highest - lowest) / median beside them", title_justify="left")
    table.add_column("engine", no_wrap=True)
    for figure in FIGURES:
        table.add_column(figure.title, justify="right")
    for title in ("equal to fp32: alone / of batch / first tokens", "load s", "peak MiB", "other cores"):
        table.add_column(title, justify="right")
    for name, arm in width["arms"].items():
        figures = [_summary(arm.get(figure.name)) for figure in FIGURES]
        table.add_row(
            name,
            *figures,
            _agreement(arm.get("greedy_agreement_with_fp32")),
            _number(arm["load_s"], ".1f"),
            _number(arm["peak_rss_mib"], ".0f"),
            _number(arm.get("most_other_cores"), ".2f"),
        )
    return table


def _widths_of_parts(bits: str, width: Document) -> Table:
    table = Table(title=f"{bits} bits: what is computed in which width", title_justify="left")
    for title in ("engine", "weights", "activations", "head", "KV"):
        table.add_column(title)
    for name, arm in width["arms"].items():
        parts = arm["widths"] or {}
        table.add_row(name, *(parts.get(part, "-") for part in ("weights", "activations", "head", "kv")))
    return table


def _remarks(width: Document) -> list[str]:
    remarks = [arm["failure"] for arm in width["arms"].values() if arm["failure"] is not None]
    for name, arm in width["arms"].items():
        if arm.get("most_other_cores", 0.0) > NOTABLE_CORES or arm.get("most_stolen_cores", 0.0) > NOTABLE_CORES:
            remarks.append(f"{name}: {_disturbance(arm)}; repeat it on a quiet machine.")
    for name, ratios in width["ratios_to_fastest_peer"].items():
        for figure in FIGURES:
            if figure.name in ratios:
                found, peer = ratios[figure.name], width["fastest_peers"][figure.name]
                spread = f"single turns: {found['lowest']:.2f} to {found['highest']:.2f}"
                remarks.append(f"{figure.title}: {name} / {peer} = {found['value']:.2f} ({spread})")
    return remarks


def _disturbance(arm: Document) -> str:
    others: dict[str, float] = {}
    for turn in (*arm["singles"], *arm["batches"]):
        for name, cores in turn["noise"]["others"].items():
            others[name] = max(others.get(name, 0.0), cores)
    named = ", ".join(f"{name} {cores:.2f}" for name, cores in sorted(others.items(), key=lambda each: -each[1]))
    stolen = f", a hypervisor up to {arm['most_stolen_cores']:.2f}" if arm["most_stolen_cores"] > NOTABLE_CORES else ""
    return (
        f"others used up to {arm['most_other_cores']:.2f} cores while it was measured{stolen}"
        f"{f' ({named})' if named else ''}"
    )


def _quality(quality: Document) -> Table:
    table = Table(
        title="quantgate beside fp32: this machine's kernels (and the reference kernels), nats", title_justify="left"
    )
    table.add_column("scheme", no_wrap=True)
    for title in ("KL", "decode, |log-prob difference|", "same first choice", "as usual"):
        table.add_column(title, justify="right")
    for scheme, each in quality["schemes"].items():
        if "error" in each:
            table.add_row(scheme, each["error"])
            continue
        found, usual = each["found"], each["usual"]
        table.add_row(
            scheme,
            f"{found['kl']:.5f} ({usual['kl']:.5f})",
            f"{found['decode_delta']:.4f} ({usual['decode_delta']:.4f})",
            f"{found['top1_agreement']:.1%} ({usual['top1_agreement']:.1%})",
            "yes" if each["kept"] else "no",
        )
    return table


def _bars(document: Document) -> Table:
    table = Table(title="bars", title_justify="left")
    for title in ("bar", "bits", "what", "wanted", "found", "holds", "counts"):
        table.add_column(title)
    for bar in document["bars"]:
        doubts = document["widths"][str(bar["bits"])]["counts_not_because"]
        holds = "-" if bar["holds"] is None else "yes" if bar["holds"] else "no"
        counts = "no" if doubts else "yes"
        cells = (
            str(bar["bar"]),
            str(bar["bits"]),
            bar["words"],
            bar["wanted"],
            _number(bar["found"], ".2f"),
            holds,
            counts,
        )
        table.add_row(*cells)
    return table


def _summary(summary: Document | None) -> str:
    if summary is None:
        return "-"
    spread = (summary["highest"] - summary["lowest"]) / summary["median"]
    return f"{summary['median']:.1f} ({spread:.0%})"


def _agreement(found: Document | None) -> str:
    if found is None:
        return "-"
    return f"{found['single_prefix']} / {found['batch_prefix']:.1f} / {found['first_tokens']}"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
