"""The table of chunked prefill: what a long prompt does to the chat beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from benchmarks.practice_columns import THROUGHPUT, ttft
from benchmarks.practice_figures import Figures
from benchmarks.practice_setups import Column, PracticeTable, Setup, engine_of, one_engine
from benchmarks.practice_traffic import LONG_OUTPUT_TOKENS, Traffic

from quantgate_engine.config import EngineConfig
from quantgate_engine.scheduler.batching.settings import BatchingSettings

_REFERENCE = "no long prompts"


def calm(traffic: Traffic) -> Traffic:
    """Half of the rate: a long prompt is as much work as fifty others."""
    return replace(traffic, requests_per_s=traffic.requests_per_s / 2)


def among_long_prompts(traffic: Traffic) -> Traffic:
    """The calm traffic, and a long prompt for every 65 of its requests."""
    return replace(calm(traffic), long_prompts=max(1, traffic.requests // 65))


def engine_for_long_prompts(traffic: Traffic, active: int = 16) -> EngineConfig:
    """Four long prompts fit at once, so that memory is never what anyone waits for."""
    context_tokens = traffic.long_prompt_tokens + LONG_OUTPUT_TOKENS
    return engine_of(context_tokens, active=active, pool_tokens=4 * context_tokens)


def chunked_prefill(traffic: Traffic) -> PracticeTable:
    def row(of: Traffic, settings: BatchingSettings) -> Setup:
        return one_engine(of, replace(engine_for_long_prompts(traffic), batching=settings))

    chunks, one_piece = BatchingSettings(), BatchingSettings(chunked_prefill=False)
    return PracticeTable(
        f"Chat among prompts of {traffic.long_prompt_tokens:,} tokens, which are prefilled in chunks or in one piece",
        {
            f"chunks, {_REFERENCE}": row(calm(traffic), chunks),
            f"one piece, {_REFERENCE}": row(calm(traffic), one_piece),
            "chunks": row(among_long_prompts(traffic), chunks),
            "chunks of at most 64": row(among_long_prompts(traffic), BatchingSettings(max_chunk_tokens=64)),
            "one piece": row(among_long_prompts(traffic), one_piece),
        },
        (
            Column("others: gap p50 ms", "others", "gap_p50_ms"),
            Column("others: gap p99 ms", "others", "gap_p99_ms"),
            Column("others: longest gap ms", "others", "gap_max_ms"),
            *ttft("others"),
            *ttft("long", 50),
            THROUGHPUT,
        ),
        _moved_gap,
    )


def _moved_gap(figures: Mapping[str, Figures]) -> Mapping[str, float | None]:
    """How far the long prompts move the others' p99 inter-token gap."""
    chunks, one_piece = (
        _difference(figures[way], figures[f"{way}, {_REFERENCE}"], "others", "gap_p99_ms")
        for way in ("chunks", "one piece")
    )
    return {
        "The long prompts move the others' p99 gap in chunks by, ms": chunks,
        "and in one piece by, ms": one_piece,
        "the former over the latter": chunks / one_piece if chunks is not None and one_piece else None,
    }


def _difference(figures: Figures, reference: Figures, group: str, figure: str) -> float | None:
    value, before = figures[group][figure], reference[group][figure]
    return None if value is None or before is None else value - before
