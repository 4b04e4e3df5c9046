"""The arms table: what each arm is, what it takes, and how fast it was, with intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quantgate.metrics.registry import step_metric
from quantgate.metrics.serving_seconds import serving_seconds
from quantgate.metrics.slo_attainment import slo_attainment
from quantgate.report.engine_work import pure_rate
from quantgate.report.estimates import Estimate, percentile, proportion
from quantgate.report.figures import Table
from quantgate.report.numbers import NOTHING, count, milliseconds, percent, seconds, significant, size, with_interval
from quantgate.report.run_view import ArmView, RunView
from quantgate.report.sections.throughput_bounds import BOUND_ROWS
from quantgate.report.sections.transfer_rows import TRANSFER_ROWS
from quantgate_engine.counted import counted

Cell = Callable[[RunView, ArmView], str]
ENERGY = "energy of an output token"
RECORDED = "decode steps replayed as CUDA graphs"
_MAY_BE_MISSING = {*TRANSFER_ROWS, *BOUND_ROWS, ENERGY, RECORDED}


def arms_table(view: RunView) -> Table:
    """One column per arm, one row per property."""
    return _table(view, list(_ROWS))


def key_figures(view: RunView) -> Table:
    """The few rows that a terminal has room for; see `unanswered_requests.COUNTED_AS` for how they count failures."""
    return _table(view, ["weights", "requests finished", "TTFT p50", "TTFT p95", "TPOT p50", "TPOT p95", "goodput"])


def _table(view: RunView, names: list[str]) -> Table:
    rows = [[name, *(_ROWS[name](view, arm) for arm in view.arms)] for name in names]
    rows = [row for row in rows if row[0] not in _MAY_BE_MISSING or set(row[1:]) != {NOTHING}]
    return Table(["", *(arm.arm_id for arm in view.arms)], rows)


def _percentile_of(metric: str, quantile: float) -> Cell:
    return lambda _view, arm: with_interval(percentile(arm.times(metric), quantile), milliseconds)


def _rate(tokens: str, other_tokens: str, share_metric: str) -> Cell:
    def cell(_view: RunView, arm: ArmView) -> str:
        rate = pure_rate(arm, tokens, other_tokens)
        share = step_metric(share_metric)(arm.steps)
        if rate is None or share is None:
            return NOTHING
        return f"{with_interval(rate, significant)} tokens/s, from {percent(share)} of the tokens"

    return cell


def _status(_view: RunView, arm: ArmView) -> str:
    total = arm.requests.num_rows
    return f"{count(arm.finished)} of {count(total)}" if total else "not reached"


def _attainment(view: RunView, arm: ArmView) -> Estimate | None:
    met = slo_attainment(arm.requests, view.slo_limits)
    return proportion(int(np.sum(met)), len(met)) if view.slo_limits else None


def _goodput(view: RunView, arm: ArmView) -> str:
    """Attainment x offered rate; the interval is that of the attainment, since the offered rate is given."""
    attained, span = _attainment(view, arm), serving_seconds(arm.requests)
    if attained is None or span <= 0:
        return NOTHING
    rate = arm.requests.num_rows / span
    low, high = (None if limit is None else limit * rate for limit in (attained.low, attained.high))
    return f"{with_interval(Estimate(attained.value * rate, low, high, attained.n), significant)} requests/s"


def _peak_memory(view: RunView, arm: ArmView) -> str:
    """The arm's own peak; where all arms live in one process, which has only one peak, that of the process."""
    shared = view.run.manifest.process_peak_memory_bytes
    if arm.manifest.peak_memory_bytes is None and shared is not None:
        return f"{size(shared)}, all arms in one process"
    return size(arm.manifest.peak_memory_bytes)


def _energy(joules_per_token: float | None) -> str:
    return NOTHING if joules_per_token is None else f"{significant(joules_per_token)} J"


def _recorded(steps: int | None) -> str:
    return NOTHING if steps is None else counted(steps, "shape")


def _mean_batch(metric: str) -> Cell:
    return lambda _view, arm: significant(step_metric(metric)(arm.steps))


_ROWS: dict[str, Cell] = {
    "role": lambda _view, arm: arm.role_words,
    "model": lambda _view, arm: arm.manifest.model,
    "target": lambda _view, arm: arm.manifest.target,
    "scheme": lambda _view, arm: arm.manifest.scheme,
    "computes in; head; KV cache": lambda _view, arm: (
        f"{arm.manifest.compute_dtype}; {arm.manifest.head_dtype}; {arm.manifest.kv_dtype}"
    ),
    "kernel set": lambda _view, arm: arm.manifest.kernel_set,
    RECORDED: lambda _view, arm: _recorded(arm.manifest.recorded_steps),
    "load time": lambda _view, arm: seconds(arm.manifest.load_seconds),
    "weights": lambda _view, arm: size(arm.manifest.weight_bytes),
    "of them linear layers": lambda _view, arm: size(arm.manifest.linear_weight_bytes),
    "KV cache of a token": lambda _view, arm: size(arm.manifest.kv_bytes_per_token),
    "peak memory": _peak_memory,
    "requests finished": _status,
    "TTFT p50": _percentile_of("ttft_ms", 0.50),
    "TTFT p95": _percentile_of("ttft_ms", 0.95),
    "TPOT p50": _percentile_of("tpot_ms", 0.50),
    "TPOT p95": _percentile_of("tpot_ms", 0.95),
    "prefill throughput": _rate("prefill_tokens", "decode_tokens", "prefill_tok_s_share"),
    "bound of prefill": BOUND_ROWS["bound of prefill"],
    "decode throughput": _rate("decode_tokens", "prefill_tokens", "decode_tok_s_share"),
    "bound of decode": BOUND_ROWS["bound of decode"],
    ENERGY: lambda _view, arm: _energy(arm.manifest.joules_per_token),
    "decode batch, mean": _mean_batch("batch_size_decode"),
    "SLO attainment": lambda view, arm: with_interval(_attainment(view, arm), percent),
    "goodput": _goodput,
    **TRANSFER_ROWS,
    "notes": lambda _view, arm: "; ".join(arm.manifest.notes) or NOTHING,
}
