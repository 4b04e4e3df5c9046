"""What `quantgate bench` prints: each figure with its bound beside it, and how each operation was computed."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from quantgate.bounds.limit_words import limit_words
from quantgate_engine.counted import counted

_UNITS = {"prefill_tok_s": ("prefill", "prompt token"), "decode_tok_s": ("decode", "request")}


def print_bench(document: dict[str, Any], console: Console) -> None:
    """document: as `bench_arms` returns it."""
    console.print(_figures(document))
    if document["device_limits"] is not None:
        console.print(limits_sentence(document["device_limits"]), markup=False, highlight=False)
    console.print(_kernel_paths(document["arms"]))


def limits_sentence(limits: dict[str, Any]) -> str:
    """What the bounds were computed from, in words."""
    told = ", ".join(
        f"{words.title} {words.rate}" + (f" (by {words.by})" if words.by else "") for words in limit_words(limits)
    )
    return f"Bounds are those of this device with {counted(limits['threads'], 'thread')}, as measured: {told}."


def bound_cell(value: float, bound: float | None) -> str:
    """`112 of 297 (38%)`: tokens per second, of the most that the device allows, and the share that this is."""
    return f"{value:,.0f} (no bound)" if bound is None else f"{value:,.0f} of {bound:,.0f} ({value / bound:.0%})"


def _figures(document: dict[str, Any]) -> Table:
    arms = document["arms"]
    table = Table(title=f"{document['model']}: tokens per second, of the device's bound (share reached)")
    table.add_column("figure")
    for arm_id in arms:
        table.add_column(arm_id, justify="right")
    table.add_row("weight bytes", *(f"{arm['weight_bytes'] / 1e6:,.1f} MB" for arm in arms.values()))
    table.add_row("load", *(f"{arm['load_seconds']:.2f} s" for arm in arms.values()))
    table.add_row("compute dtype", *(str(arm["compute_dtype"]) for arm in arms.values()))
    table.add_row(
        "KV cache", *(f"{arm['kv_dtype']}, {arm['kv_bytes_per_token']:,} bytes a token" for arm in arms.values())
    )
    first = next(iter(arms.values()))
    for figure, (kind, unit) in _UNITS.items():
        for size in first[figure]:
            cells = (bound_cell(arm[figure][size], arm["bounds"][figure][size]) for arm in arms.values())
            table.add_row(f"{kind}, {counted(int(size), unit)}", *cells)
    return table


def _kernel_paths(arms: dict[str, Any]) -> Table:
    operations = sorted({operation for arm in arms.values() for operation in arm["kernel_paths"]})
    table = Table(title="How each operation was computed")
    table.add_column("operation")
    for arm_id in arms:
        table.add_column(arm_id)
    table.add_row("kernel set", *(arm["kernel_set"] for arm in arms.values()))
    recorded = [arm["recorded_steps"] for arm in arms.values()]
    if None not in recorded:
        table.add_row("decode steps replayed as CUDA graphs", *(counted(shapes, "shape") for shapes in recorded))
    for operation in operations:
        table.add_row(operation, *(arm["kernel_paths"].get(operation, "not used") for arm in arms.values()))
    return table
