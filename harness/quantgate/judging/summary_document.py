"""The JSON form of what judging found (schema `quantgate.judging/1`)."""

from __future__ import annotations

from typing import Any

from quantgate.judging.budget import Spending
from quantgate.judging.calibration import Calibration
from quantgate.judging.cost import Prices
from quantgate.judging.judge_run import PreparedJudging
from quantgate.judging.judging_session import SessionOutcome
from quantgate.judging.net_share import WinShare
from quantgate.judging.summary import ArmPreference, JudgingSummary

JUDGING_SCHEMA = "quantgate.judging/1"


def judging_document(
    run_id: str, prepared: PreparedJudging, outcome: SessionOutcome, summary: JudgingSummary, prices: Prices | None
) -> dict[str, Any]:
    """Shares are fractions, losses positive where the baseline is preferred; money in the currency of the prices."""
    plan = prepared.plan
    return {
        "schema": JUDGING_SCHEMA,
        "run_id": run_id,
        "judge": prepared.order.model,
        "plan": {
            "requests_drawn": plan.items,
            "later_turns_left_out": prepared.later_turns,
            "pairs": len(plan.pairs),
            "identical": plan.identical,
            "judged_before": plan.judged_before,
            "to_judge": plan.to_ask,
            "likely_cost": _spending(plan.likely, prices),
            "most_cost": _spending(plan.most, prices),
        },
        "budget": {
            "requests": prepared.order.budget_requests,
            "tokens": prepared.order.budget_tokens,
            "overrun_tokens": outcome.overrun_tokens,
        },
        "spent": _spending(summary.spent, prices),
        "pairs_not_begun": outcome.left,
        "stopped": outcome.stopped,
        "failures": dict(summary.failures),
        "unparsable": summary.unparsable,
        "overbilled_calls": summary.overbilled,
        "arms": {arm.arm_id: _arm(arm) for arm in summary.arms},
        "position_bias": _wins(summary.position),
        "calibration": _calibration(summary.calibration),
    }


def _calibration(calibration: Calibration | None) -> dict[str, Any] | None:
    if calibration is None:
        return None
    loss, interval, pairs = calibration.preference
    return {
        "loss": loss,
        "interval": list(interval),
        "pairs": pairs,
        "identical": calibration.identical,
        "fit": calibration.fit,
    }


def _arm(arm: ArmPreference) -> dict[str, Any]:
    return {
        "role": arm.role,
        "pairs": arm.pairs,
        "prefer_baseline": arm.prefer_baseline,
        "prefer_arm": arm.prefer_arm,
        "ties": arm.ties,
        "identical": arm.identical,
        "undecided": arm.undecided,
        "decided_by_people": arm.by_people,
        "loss": arm.net.value if arm.net else None,
        "interval": list(arm.net.interval) if arm.net else None,
        "baseline_wins": _wins(arm.baseline_wins),
    }


def _wins(wins: WinShare | None) -> dict[str, Any] | None:
    """For the position bias: the share of choices that went to the answer shown first."""
    return {"share": wins.share, "interval": list(wins.interval), "pairs": wins.n} if wins else None


def _spending(spending: Spending, prices: Prices | None) -> dict[str, Any]:
    return {
        "requests": spending.requests,
        "prompt_tokens": spending.prompt_tokens,
        "completion_tokens": spending.completion_tokens,
        "money": prices.of(spending) if prices else None,
    }
