"""Rows of the arms table beside the throughputs: the bound of the very steps that were run, on this machine."""

from __future__ import annotations

from collections.abc import Callable

from quantgate.bounds.limit_words import limit_words
from quantgate.bounds.step_bounds import Kind, against_bound
from quantgate.report.figures import Table
from quantgate.report.numbers import NOTHING, percent, significant
from quantgate.report.run_view import ArmView, RunView
from quantgate.targets.base import BUNDLED_ENGINE
from quantgate_engine.counted import counted
from quantgate_kernels.roofline import DecoderWork, DeviceLimits

NOT_RECORDED = "not recorded"
_SET_BY = {"memory": "reading memory", "arithmetic": "arithmetic"}


def _bound(kind: Kind) -> Callable[[RunView, ArmView], str]:
    def cell(view: RunView, arm: ArmView) -> str:
        if arm.manifest.target != BUNDLED_ENGINE:
            return NOTHING
        limits, work = view.run.manifest.device_limits, arm.manifest.step_work
        if limits is None or work is None:
            return NOT_RECORDED
        measured, least = DeviceLimits(**limits.model_dump()), DecoderWork(**work.model_dump())
        found = against_bound(arm.steps, kind, least, measured)
        if found is None:
            return NOTHING
        rate, set_by = significant(found.tok_s), _SET_BY[found.bound.limited_by]
        return f"{rate} tokens/s, set by {set_by}; {percent(found.share)} of it reached"

    return cell


BOUND_ROWS = {"bound of prefill": _bound("prefill"), "bound of decode": _bound("decode")}
"""Left out where no arm has anything to say: servers tell neither what their steps were nor what they ran on."""


def has_bounds(view: RunView) -> bool:
    return view.run.manifest.device_limits is not None and any(arm.manifest.step_work for arm in view.arms)


def limits_table(view: RunView) -> Table | None:
    """What this machine was measured to do at most; None where it was not measured."""
    limits = view.run.manifest.device_limits
    if limits is None:
        return None
    rows = [[words.title, words.rate, words.by or NOTHING] for words in limit_words(limits.model_dump())]
    return Table([f"at most, with {counted(limits.threads, 'thread')}", "measured", "by"], rows)
