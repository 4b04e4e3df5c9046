"""Tables of `quantgate doctor --kernels`."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from quantgate.doctor.gpu_kernels import KernelSurvey
from quantgate_kernels.gpu.launch_table import SHARED_MEMORY

PIPE_WIDTH = 150
"""Columns where standard output is no terminal, which nothing has to fit into."""

NOTES = """\
matrix: instructions of matrix products. 16-byte loads: share of the bytes that global loads bring 16 at a time.
moved, operations: what the launch must move through memory and do in matrix products, by the kernel's documented bound.
bound: the longer of the two at the published peaks; memory, arithmetic: the share of either peak at that speed.
None of it is a time of the kernel's: what share of its bound it reaches, only a measurement on the device can say.
"""


def print_survey(survey: KernelSurvey, console: Console) -> None:
    for architecture in survey.architectures:
        kernels = [row for row in survey.kernels if row["architecture"] == architecture]
        failed = [row for row in survey.failed if row["architecture"] == architecture]
        console.print(_title(architecture, survey.triton), style="bold", highlight=False)
        console.print(_table(kernels, SHARED_MEMORY[architecture]))
        for row in failed:
            # A line of its own, as wide as it is: in a cell it would be folded.
            words = f"{row['case']}: does not compile: {row['problem']}"
            console.print(words, style="bold red", markup=False, highlight=False, soft_wrap=True)
        console.print()
    console.print(NOTES, markup=False, highlight=False, end="")


def survey_console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=PIPE_WIDTH)


def _title(architecture: str, triton: str) -> str:
    from quantgate_kernels.gpu.ahead.published import PUBLISHED

    peaks = PUBLISHED[architecture]
    rates = ", ".join(f"{ops / 1e12:,.0f} T {width} operations/s" for width, ops in peaks.ops_per_s.items())
    shared = SHARED_MEMORY[architecture]
    return (
        f"{architecture} by Triton {triton}: {shared:,} bytes of shared memory a program; "
        f"{peaks.device} as published: {peaks.bytes_per_s / 1e12:.2f} TB/s, {rates}"
    )


def _table(kernels: list[dict[str, Any]], shared_limit: int) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("kernel, configuration, launch", overflow="fold")
    for name in ("registers", "spills", "shared"):
        table.add_column(name, justify="right")
    table.add_column("matrix", overflow="fold")
    for name in ("16-byte\nloads", "moved", "oper-\nations", "bound\nµs", "mem-\nory", "arith-\nmetic"):
        table.add_column(name, justify="right", no_wrap=True)
    by_name = sorted(kernels, key=lambda row: row["kernel"])
    for name, rows in groupby(by_name, key=lambda row: str(row["kernel"])):
        table.add_row(Text(name, style="bold"))
        for row in rows:
            table.add_row(*_cells(row, shared_limit))
    return table


def _cells(row: dict[str, Any], shared_limit: int) -> list[Text]:
    facts, work, roofline = row["facts"], row["work"], row["roofline"]
    loads = facts["load_bytes"]
    loaded = sum(loads.values())
    return [
        Text(f"  {row['case']}\n  [{work['shape']}]"),
        Text(str(facts["registers"])),
        Text(str(facts["spills"]), style="red" if facts["spills"] else ""),
        Text(f"{facts['shared_bytes']:,}", style="red" if facts["shared_bytes"] > shared_limit else ""),
        Text("\n".join(facts["matrix"]) or "-"),
        Text(_percent(loads.get("16", 0) / loaded) if loaded else "-"),
        Text(_short(work["bytes_moved"]) + "B"),
        Text(_short(work["operations"]) if work["operations"] else "-"),
        Text(f"{roofline['seconds'] * 1e6:.3g}"),
        Text(_percent(roofline["memory_share"])),
        Text(_percent(roofline["arithmetic_share"]) if work["operations"] else "-"),
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _short(number: float) -> str:
    """`16.8 M`"""
    for power, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= power:
            return f"{number / power:.3g} {prefix}"
    return f"{number} "
