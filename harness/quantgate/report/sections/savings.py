"""What an arm would save: weight bytes, memory, engine time, and money where a price per hour is given."""

from __future__ import annotations

from quantgate.report.engine_work import busy_requests_per_hour, busy_seconds_per_output_token
from quantgate.report.figures import Table
from quantgate.report.numbers import NOTHING, count, signed_percent, significant, size
from quantgate.report.run_view import ArmView, RunView


def cost_per_million(arm: ArmView, price_per_hour: float) -> float | None:
    """Price of the engine time behind a million output tokens: price/h x busy seconds per token x 1e6 / 3600."""
    per_token = busy_seconds_per_output_token(arm)
    return None if per_token is None else price_per_hour * per_token * 1e6 / 3600.0


def savings_lines(view: RunView, arm: ArmView) -> list[str]:
    """The arm against the baseline, one sentence per thing that can be saved."""
    base = view.baseline
    if base is None:
        return []
    lines = []
    old_bytes, new_bytes = base.manifest.weight_bytes, arm.manifest.weight_bytes
    if old_bytes is not None and new_bytes is not None:
        lines.append(f"Weights take {size(new_bytes)} instead of {size(old_bytes)} ({_change(old_bytes, new_bytes)}).")
    before, after = busy_seconds_per_output_token(base), busy_seconds_per_output_token(arm)
    if before is not None and after is not None:
        lines.append(
            f"Engine time per output token, prompt work included: {significant(after * 1e3)} ms instead of "
            f"{significant(before * 1e3)} ms ({_change(before, after)}), at this load."
        )
    if view.price_per_hour is not None and before is not None and after is not None:
        old, new = cost_per_million(base, view.price_per_hour), cost_per_million(arm, view.price_per_hour)
        lines.append(f"A million output tokens cost {significant(new)} instead of {significant(old)}.")
    return lines


def savings_table(view: RunView) -> Table | None:
    measured = [arm for arm in view.arms if busy_seconds_per_output_token(arm) is not None]
    if not measured:
        return None
    headers = ["arm", "weights", "engine time per output token", "change", "requests per device-hour, kept busy"]
    if view.price_per_hour is not None:
        headers.append(f"cost per million output tokens, at {view.price_per_hour:g} per hour")
    return Table(headers, [_row(view, arm) for arm in measured])


def _row(view: RunView, arm: ArmView) -> list[str]:
    per_token = busy_seconds_per_output_token(arm)
    base = busy_seconds_per_output_token(view.baseline) if view.baseline else None
    per_hour = busy_requests_per_hour(arm)
    row = [
        arm.arm_id,
        size(arm.manifest.weight_bytes),
        NOTHING if per_token is None else f"{significant(per_token * 1e3)} ms",
        NOTHING if base is None or per_token is None or arm.role == "baseline" else _change(base, per_token),
        NOTHING if per_hour is None else count(round(per_hour)),
    ]
    if view.price_per_hour is not None:
        row.append(significant(cost_per_million(arm, view.price_per_hour)))
    return row


def _change(before: float, after: float) -> str:
    return signed_percent(after / before - 1) if before else NOTHING
