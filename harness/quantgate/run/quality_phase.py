"""The quality tiers of a run: the answers of the replay compared token by token, and the tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pyarrow as pa

from quantgate.quality.config import QualityConfig
from quantgate.quality.distribution import AnswerSequence
from quantgate.quality.evaluate import Evaluation, QualityProgress, evaluate
from quantgate.quality.task_item import Task
from quantgate.run.arms import OpenedArms
from quantgate.store.tier_status import QualityTier
from quantgate.workload.plan import ReplayPlan


def evaluation(
    arms: OpenedArms,
    config: QualityConfig,
    tasks: list[Task],
    plan: ReplayPlan,
    requests: pa.Table,
    on_progress: Callable[[QualityProgress], None],
) -> Evaluation:
    """Yields batches of rows, each whole for all arms; `requests` is the replay's request table.

    Iterate it with `each_on_compute_thread`: the comparison of logits is torch arithmetic too; beside the engines it
    would slow all of them down.
    """
    answers = answer_sequences(plan, requests, arms.baseline_id)
    chosen = config.distribution.choose(answers, plan.seed) if config.distribution else []

    def bring_up(arm_id: str) -> None:
        if arm_id in arms.host.servers:
            asyncio.run(arms.host.bring_up(arm_id))

    return evaluate(
        arms.quality_models(),
        arms.baseline_id,
        sequences=chosen,
        tasks=tasks,
        tiers=_asked(config),
        order="arms" if arms.host.exclusive else "items",
        before_arm=bring_up,
        on_progress=on_progress,
    )


def _asked(config: QualityConfig) -> set[QualityTier]:
    asked: set[QualityTier] = {"distribution"} if config.distribution else set()
    return asked | {"likelihood", "answers"} if config.tasks else asked


def answer_sequences(plan: ReplayPlan, requests: pa.Table, baseline_id: str) -> list[AnswerSequence]:
    """The baseline's own answers of the first pass, with their prompts; where the tokens of both are known."""
    planned = {request.request_id: request for request in plan.requests}
    columns = requests.select(["arm_id", "pass_index", "request_id", "status", "output_token_ids"]).to_pylist()
    return [
        AnswerSequence(
            request_id=row["request_id"],
            cluster_id=planned[row["request_id"]].session_id or row["request_id"],
            prompt_ids=planned[row["request_id"]].prompt_token_ids,
            output_ids=tuple(row["output_token_ids"]),
        )
        for row in columns
        if row["arm_id"] == baseline_id
        and row["pass_index"] == 0
        and row["status"] == "finished"
        and row["output_token_ids"]
        and planned[row["request_id"]].prompt_token_ids
    ]
