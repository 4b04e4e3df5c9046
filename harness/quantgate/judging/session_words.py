"""A judging session in words: what it will cost, and what it did."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from quantgate.judging.budget import Spending
from quantgate.judging.cost import Prices
from quantgate.judging.finding_words import arm_line, calibration_words, position_words
from quantgate.judging.judge_run import PreparedJudging
from quantgate.judging.judging_session import SessionOutcome
from quantgate.judging.live_history import left_out_words
from quantgate.judging.pair_verdicts import VERDICTS, PairKey
from quantgate.judging.rows import OVERBILLED, Row
from quantgate.judging.summary import JudgingSummary
from quantgate_engine.counted import counted, plural


def cost_statement(prepared: PreparedJudging, prices: Prices | None) -> list[str]:
    """Before the first call: how many calls, how many tokens, how much money."""
    plan, order = prepared.plan, prepared.order
    lines = [
        *left_out_words(prepared.later_turns),
        f"{counted(plan.items, 'request')} drawn, {counted(len(plan.pairs), 'pair')} of answers: {plan.identical:,} "
        f"identical (ties, no call), {plan.judged_before:,} judged before, {plan.to_ask:,} to judge.",
    ]
    if not plan.to_ask:
        return lines
    lines += [
        f"Cost: {counted(plan.likely.requests, 'call')} of {order.model}; about {_usage(plan.likely, prices)}; at most "
        f"{_usage(plan.most, prices)}, further calls after failures aside.",
        f"Budget: {counted(order.budget_requests, 'call')} and {counted(order.budget_tokens, 'token')}"
        + (f", of which {_spent(prepared.spent_before, prices)} are spent." if prepared.spent_before.requests else "."),
    ]
    if not prepared.covered_for_certain:
        lines.append("It may not cover all of that: judging ends before the first pair that it might not pay for.")
    return lines


def record_words(prepared: PreparedJudging, on_record: Collection[PairKey]) -> str | None:
    """Which of the pairs that the figures count this session did not draw; None where it drew them all."""
    others = set(on_record) - {planned.pair.key for planned in prepared.plan.pairs}
    if not others:
        return None
    return (
        f"The figures count all {counted(len(on_record), 'pair')} on record; {len(others):,} of them "
        f"{plural(len(others), 'is', 'are')} not of this sample: "
        "earlier judging or people's reviews drew them."
    )


def outcome_lines(outcome: SessionOutcome) -> list[str]:
    """What was not done, and why."""
    lines = []
    if outcome.stopped is not None:
        lines.append(
            f"Ended early, {outcome.stopped}: {counted(outcome.left, 'pair')} of the sample "
            f"{plural(outcome.left, 'was', 'were')} not begun."
        )
    if outcome.failures:
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(outcome.failures.items()))
        lines.append(f"Failed calls: {kinds}.")
    overbilled = sum(row["error_kind"] == OVERBILLED for row in outcome.rows)
    if overbilled:
        lines.append(f"Calls that the judge's server billed above what they were allowed to use: {overbilled:,}.")
    if outcome.overrun_tokens:
        lines.append(f"The budget is overdrawn by {counted(outcome.overrun_tokens, 'token')}.")
    return lines


def failure_words(prepared: PreparedJudging, outcome: SessionOutcome) -> str | None:
    """Why the command failed: its calls brought nothing, or fail; None where neither is so.

    Where a session had nothing left to ask, the calls of earlier ones count.
    """
    calls = _calls(outcome.rows) or _calls(prepared.kept)
    if calls and not any(row["choice"] in VERDICTS for row in calls):
        last = f"{outcome.last_error} " if outcome.last_error else ""
        return (
            f"{last}None of {counted(len(calls), 'call')} of {prepared.order.model} brought a verdict that can be "
            "read; mend what failed, or choose a judge that answers with the JSON object asked for (--model, "
            "--replace)."
        )
    if outcome.hopeless:
        return f"{outcome.last_error} What was judged so far is kept; the same command goes on from there."
    return None


def _calls(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["source"] == "judge"]


def summary_lines(summary: JudgingSummary, prices: Prices | None) -> list[str]:
    return [
        *(arm_line(arm) for arm in summary.arms),
        f"Position: {position_words(summary.position)}.",
        f"Calibration: {calibration_words(summary.calibration)}.",
        f"Spent: {_spent(summary.spent, prices)}; {counted(summary.unparsable, 'reply', 'replies')} could not be read.",
    ]


def _usage(spending: Spending, prices: Prices | None) -> str:
    money = f" ({prices.of(spending):,.4f} at the given prices)" if prices else ""
    return f"{spending.prompt_tokens:,} prompt and {counted(spending.completion_tokens, 'reply token')}{money}"


def _spent(spending: Spending, prices: Prices | None) -> str:
    return f"{counted(spending.requests, 'call')}, {_usage(spending, prices)}"
