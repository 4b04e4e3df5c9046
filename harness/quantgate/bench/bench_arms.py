"""`quantgate bench`: prefill and decode throughput of each arm, measured alone, side by side in one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from quantgate.bench.measure import decode_tok_s, prefill_tok_s
from quantgate.environment import capture_environment
from quantgate.progress import ProgressReporter
from quantgate_engine import LLM, EngineConfig
from quantgate_engine.executor.compute_thread import on_compute_thread
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.config import DecoderConfig, read_decoder_config
from quantgate_kernels.roofline import DeviceLimits, decode_bound_tok_s, measure_device_limits, prefill_bound_tok_s

BENCH_SCHEMA = "quantgate.bench/1"


@dataclass(frozen=True, slots=True)
class BenchSettings:
    model: str
    schemes: tuple[str, ...]
    prompt_lengths: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    context_tokens: int
    repeats: int
    seed: int
    threads: int | None
    max_step_tokens: int

    def engine_config(self) -> EngineConfig:
        batch = max(self.batch_sizes)
        longest = max(max(self.prompt_lengths) + 1, self.context_tokens + 32 + self._prefill_steps(batch) + batch)
        return EngineConfig(
            max_active_requests=batch,
            max_step_tokens=max(self.max_step_tokens, batch + 1),
            max_context_tokens=longest,
            threads=self.threads,
        )

    def _prefill_steps(self, batch: int) -> int:
        return -(-batch * self.context_tokens // max(1, self.max_step_tokens - batch))


def bench_arms(settings: BenchSettings, progress: ProgressReporter) -> dict[str, Any]:
    """Loads every arm, then measures each figure on all arms before the next figure. Returns the JSON document."""
    arms = _load(settings, progress)
    limits = on_compute_thread(measure_device_limits)
    results: dict[str, dict[str, Any]] = {scheme: _described(llm) for scheme, llm in arms.items()}
    figures = len(settings.prompt_lengths) + len(settings.batch_sizes)
    with progress.phase("measure", figures * len(arms)) as advance:
        done = 0
        for tokens in settings.prompt_lengths:
            for scheme, llm in arms.items():
                rate = prefill_tok_s(llm, tokens, settings.repeats, settings.seed)
                results[scheme]["prefill_tok_s"][str(tokens)] = rate
                advance(done := done + 1, f"{scheme} prefill {tokens}")
        for batch in settings.batch_sizes:
            for scheme, llm in arms.items():
                rate = decode_tok_s(llm, batch, settings.context_tokens, settings.repeats, settings.seed)
                results[scheme]["decode_tok_s"][str(batch)] = rate
                advance(done := done + 1, f"{scheme} decode {batch}")
    shape = read_decoder_config(resolve_model(settings.model).path)
    for scheme, llm in arms.items():
        results[scheme]["kernel_paths"] = dict(llm.info.kernel_paths)
        results[scheme]["bounds"] = _bounds(llm, shape, settings, limits)
    return {
        "schema": BENCH_SCHEMA,
        "model": settings.model,
        "decode_context_tokens": settings.context_tokens,
        "repeats": settings.repeats,
        "device_limits": {
            "read_bytes_per_s": limits.read_bytes_per_s,
            "matmul_ops_per_s": limits.matmul_ops_per_s,
        },
        "environment": capture_environment().model_dump(),
        "arms": results,
    }


def _load(settings: BenchSettings, progress: ProgressReporter) -> dict[str, LLM]:
    arms = {}
    with progress.phase("load", len(settings.schemes)) as advance:
        for loaded, scheme in enumerate(settings.schemes, start=1):
            arms[scheme] = LLM(settings.model, scheme=scheme, config=settings.engine_config())
            advance(loaded, scheme)
    return arms


def _described(llm: LLM) -> dict[str, Any]:
    info = llm.info
    return {
        "scheme": info.scheme,
        "compute_dtype": info.compute_dtype,
        "head_dtype": info.head_dtype,
        "kv_dtype": info.kv_dtype,
        "kernel_set": info.kernel_set,
        "load_seconds": info.load_seconds,
        "weight_bytes": info.weight_bytes,
        "linear_weight_bytes": info.linear_weight_bytes,
        "prefill_tok_s": {},
        "decode_tok_s": {},
    }


def _bounds(
    llm: LLM, shape: DecoderConfig, settings: BenchSettings, limits: DeviceLimits
) -> dict[str, dict[str, float]]:
    parameters = shape.num_layers * shape.linear_parameters_per_layer
    kv_bytes = shape.kv_bytes_per_token(getattr(torch, llm.info.kv_dtype).itemsize)
    return {
        "prefill_tok_s": {
            str(tokens): prefill_bound_tok_s(
                limits, parameters, tokens, shape.num_layers, shape.num_heads, shape.head_dim
            )
            for tokens in settings.prompt_lengths
        },
        "decode_tok_s": {
            str(batch): decode_bound_tok_s(limits, llm.info.weight_bytes, kv_bytes, settings.context_tokens, batch)
            for batch in settings.batch_sizes
        },
    }


def bench_rows(document: dict[str, Any]) -> Sequence[tuple[str, str, dict[str, float], dict[str, float]]]:
    """Rows for a table: (figure, size, value per arm, bound per arm)."""
    arms = document["arms"]
    sizes = {figure: list(next(iter(arms.values()))[figure]) for figure in ("prefill_tok_s", "decode_tok_s")}
    return [
        (
            figure,
            size,
            {arm_id: arm[figure][size] for arm_id, arm in arms.items()},
            {arm_id: arm["bounds"][figure][size] for arm_id, arm in arms.items()},
        )
        for figure, figure_sizes in sizes.items()
        for size in figure_sizes
    ]
