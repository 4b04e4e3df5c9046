"""A stored run of ours as results to compare: one for every arm."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quantgate.foreign_results.measured_result import MeasuredResult, TimeFigures, present, rates_of
from quantgate.gate.delivery import load_notes
from quantgate.metrics.columns import is_equal
from quantgate.metrics.endless_times import unanswered
from quantgate.metrics.failed import FAILED
from quantgate.metrics.finished_only import milliseconds_of_finished
from quantgate.metrics.goodput_rps import goodput_rps
from quantgate.metrics.itl_ms import ITL_MS
from quantgate.metrics.output_tokens_per_s import output_tokens_per_s
from quantgate.metrics.serving_seconds import serving_seconds
from quantgate.metrics.tpot_ms import TPOT_MS
from quantgate.metrics.ttft_from_sent_ms import TTFT_FROM_SENT_MS
from quantgate.metrics.ttft_ms import TTFT_MS
from quantgate.report.run_view import ArmView, RunView
from quantgate.store.run_folder import LoadedRun

TOOL = "quantgate"
_DEFINITIONS = {
    "ttft_ms": "first token - scheduled",
    "ttft_from_sent_ms": "first token - sent",
    "tpot_ms": "(last token - first token) / (output tokens - 1), per request",
    "itl_ms": "gaps between tokens, pooled over requests",
    "e2e_from_sent_ms": "last token - sent",
}
_UNANSWERED_ARE_INFINITE = "; percentiles count an unanswered request as infinitely slow"
_RATES = {
    "requests_per_s": "finished requests / seconds of serving",
    "output_tokens_per_s": "output tokens / seconds of serving",
    "goodput_rps": "requests within the limits of the run's policy / seconds of serving",
}


def results_of_run(run: LoadedRun, source: str) -> list[MeasuredResult]:
    """One result per arm that served requests; the A/A arm is the baseline's second appearance and stands by itself."""
    view = RunView(run, None)
    return [_result(view, arm, source) for arm in view.arms if arm.requests.num_rows]


def _result(view: RunView, arm: ArmView, source: str) -> MeasuredResult:
    requests, run = arm.requests, view.run.manifest
    return MeasuredResult(
        label=f"{arm.arm_id} of {run.run_id}",
        tool=TOOL,
        source=source,
        model=arm.manifest.model,
        finished=arm.finished,
        failed=int((FAILED(requests) == 1).sum()),
        seconds=serving_seconds(requests),
        times=_times(requests),
        rates=rates_of(
            _RATES,
            {
                "requests_per_s": _finished_per_second(requests),
                "output_tokens_per_s": output_tokens_per_s(requests),
                "goodput_rps": goodput_rps(requests, view.slo_limits) if view.slo_limits else None,
            },
        ),
        notes=tuple(_notes(view.run, arm.arm_id)),
    )


def _times(requests: pa.Table) -> dict[str, TimeFigures]:
    by_request = {
        "ttft_ms": TTFT_MS(requests),
        "ttft_from_sent_ms": TTFT_FROM_SENT_MS(requests),
        "tpot_ms": TPOT_MS(requests),
        "e2e_from_sent_ms": milliseconds_of_finished(requests, "sent_ns", "last_token_ns"),
    }
    figures = {
        name: TimeFigures.from_values(
            np.where(unanswered(requests), np.inf, own), _DEFINITIONS[name] + _UNANSWERED_ARE_INFINITE
        )
        for name, own in by_request.items()
    }
    # A gap that never came is no gap: unanswered requests have those that did.
    gaps = TimeFigures.from_values(ITL_MS(requests).values, _DEFINITIONS["itl_ms"], independent=False)
    return present(figures | {"itl_ms": gaps})


def _finished_per_second(requests: pa.Table) -> float | None:
    seconds = serving_seconds(requests)
    return float(is_equal(requests, "status", "finished").sum()) / seconds if seconds > 0 else None


def _notes(run: LoadedRun, arm_id: str) -> list[str]:
    notes = []
    manifest = run.manifest
    if manifest.state != "complete":
        notes.append(f"The run is {manifest.state}: these are the requests that it got to.")
    notes += [
        f"The load was not delivered: {' '.join(certificate.reasons)}"
        for certificate in manifest.fidelity
        if certificate.arm_id == arm_id and not certificate.valid
    ]
    notes += load_notes(manifest)
    return notes
