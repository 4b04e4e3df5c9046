"""Which stratum a session or a single request belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from quantgate.traces.record import TraceRecord
from quantgate.workload.prompt_encoder import PromptEncoder

StratumKey = Literal["class", "length", "tags"]


def stratum_of(
    unit: Sequence[TraceRecord], by: Sequence[StratumKey], length_edges: Sequence[int], encoder: PromptEncoder
) -> str:
    """Such as `interactive | 513 to 2048 tokens | rag`; sessions go by class, longest prompt and all tags."""
    parts: dict[StratumKey, Callable[[], str]] = {
        "class": lambda: unit[0].slo_class,
        "length": lambda: _bucket(max(encoder.rough_count(record) for record in unit), length_edges),
        "tags": lambda: ", ".join(sorted({tag for record in unit for tag in record.tags})) or "no tag",
    }
    return " | ".join(parts[key]() for key in by) or "all"


def _bucket(length: int, edges: Sequence[int]) -> str:
    lower = 0
    for upper in edges:
        if length <= upper:
            return f"{lower + 1 if lower else 0} to {upper} tokens"
        lower = upper
    return f"above {lower} tokens" if lower else "any length"
