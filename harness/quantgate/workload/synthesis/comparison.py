"""What a drawn trace was to be and what it is, by the accumulators of `trace inspect`."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.traces.promised_sharing import promised_sharing
from quantgate.traces.record import TraceRecord
from quantgate.traces.traffic_shape import describe
from quantgate.workload.synthesis.fit import TrafficFit, fit_traffic
from quantgate_engine.errors import ConfigurationError

# Shares of whole blocks do not depend on the engine's block size, which the count asks for.
_ANY_KV_BLOCK = 16


def asked_figures(fit: TrafficFit, rate_rps: float) -> dict[str, float | None]:
    """Those of the recorded trace, but for the rate that was asked for."""
    recorded = [record for window in fit.windows for unit in window.units for record in unit]
    recorded.sort(key=lambda record: record.scheduled_ns)
    return {"rate_rps": rate_rps, "gap_cv": fit.gap_cv} | _figures(recorded)


def found_figures(drawn: Sequence[TraceRecord], duration_s: float, window_s: float) -> dict[str, float | None]:
    """window_s: of the fit, stretched as the draw was. The rate counts all requests over the whole duration."""
    try:
        gap_cv = fit_traffic(drawn, window_s).gap_cv
    except ConfigurationError:
        # Too little was drawn for gaps.
        gap_cv = None
    return {"rate_rps": len(drawn) / duration_s, "gap_cv": gap_cv} | _figures(drawn)


def _figures(records: Sequence[TraceRecord]) -> dict[str, float | None]:
    shape = describe(records).to_json()
    lengths = {
        f"{side}_tokens_{percentile}": float(shape[f"{side}_tokens"][percentile])
        for side in ("input", "output")
        for percentile in ("p50", "p90", "p99")
    }
    sharing = promised_sharing(records, _ANY_KV_BLOCK)
    sessions = {record.session_id for record in records if record.session_id is not None}
    turns = sum(record.session_id is not None for record in records)
    return lengths | {
        "input_to_output": shape["input_to_output"],
        "shared_share": sharing.shared_blocks / sharing.blocks if sharing.blocks else None,
        "turns_per_session": turns / len(sessions) if sessions else None,
    }
