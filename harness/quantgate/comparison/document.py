"""A comparison as one JSON document (schema `quantgate.comparison/1`)."""

from __future__ import annotations

from typing import Any, Literal

from quantgate.comparison.compare import UNPAIRED, Comparison
from quantgate.comparison.paired import CONFIDENCE, PairedComparison, PairedFigure
from quantgate.foreign_results.measured_result import MeasuredResult, TimeFigures
from quantgate.gate.wording import finite
from quantgate.stats.interval import Interval

COMPARISON_SCHEMA: Literal["quantgate.comparison/1"] = "quantgate.comparison/1"


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Times in milliseconds, losses as fractions or in the unit beside them; null where there is no number.

    A percentile's value or limit that is an unanswered request's, and so infinite, is null too: `unanswered` says how
    many of the n those are.
    """
    return {
        "schema": COMPARISON_SCHEMA,
        "confidence": CONFIDENCE,
        "verdict": None,
        "results": [_result(result) for result in comparison.results],
        "paired": [_paired(paired) for paired in comparison.paired],
        "unpaired": {"results": comparison.unpaired, "reason": UNPAIRED} if comparison.unpaired else None,
    }


def _result(result: MeasuredResult) -> dict[str, Any]:
    return {
        "label": result.label,
        "tool": result.tool,
        "source": result.source,
        "model": result.model,
        "finished": result.finished,
        "failed": result.failed,
        "seconds": result.seconds,
        "times": {name: _time(figures) for name, figures in result.times.items()},
        "rates": {
            name: {"value": finite(rate.value), "definition": rate.definition} for name, rate in result.rates.items()
        },
        "notes": list(result.notes),
    }


def _time(figures: TimeFigures) -> dict[str, Any]:
    return {
        "definition": figures.definition,
        "n": figures.n,
        "unanswered": figures.unanswered,
        "mean": figures.mean,
        **{
            name: {"value": finite(found.value), "interval": _interval(found.interval), "n_is_enough": found.carried}
            for name, found in figures.percentiles.items()
        },
    }


def _paired(paired: PairedComparison) -> dict[str, Any]:
    return {
        "baseline": paired.baseline,
        "candidate": paired.candidate,
        "requests": paired.requests,
        "unpaired": paired.unpaired,
        "figures": [_figure(figure) for figure in paired.figures],
        "notes": paired.notes,
    }


def _figure(figure: PairedFigure) -> dict[str, Any]:
    return {
        "metric": figure.metric,
        "statistic": figure.statistic,
        "baseline": finite(figure.baseline),
        "candidate": finite(figure.candidate),
        "value_unit": figure.value_unit,
        "loss": finite(figure.estimate),
        "loss_unit": figure.unit,
        "interval": _interval(figure.interval),
        "noise": finite(figure.noise),
        "n": figure.n,
        "method": figure.method,
        "reading": figure.reading,
    }


def _interval(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [finite(interval.lower), finite(interval.upper)]
