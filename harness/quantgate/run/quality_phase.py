"""The quality tiers of a run: the answers of the replay compared token by token, and the tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from quantgate.quality.bundled_engine import BundledEngineModel
from quantgate.quality.config import QualityConfig
from quantgate.quality.distribution import AnswerSequence
from quantgate.quality.evaluate import QualityProgress, evaluate
from quantgate.quality.quality_model import QualityModel
from quantgate.quality.repeated_baseline import RepeatedBaseline
from quantgate.quality.rows import QualityRow
from quantgate.quality.task_item import Task
from quantgate.run.arms import LoadedArms
from quantgate.workload.plan import ReplayPlan
from quantgate_engine.executor.compute_thread import each_on_compute_thread


def quality_rows(
    arms: LoadedArms,
    config: QualityConfig,
    tasks: list[Task],
    plan: ReplayPlan,
    requests: pa.Table,
    on_progress: Callable[[QualityProgress], None],
) -> Iterator[list[QualityRow]]:
    """Batches of rows, each whole for all arms; `requests` is the replay's request table."""
    answers = answer_sequences(plan, requests, arms.baseline_id)
    chosen = config.distribution.choose(answers, plan.seed) if config.distribution else []
    # The comparison of logits is torch arithmetic too; beside the engines it would slow all of them down.
    return each_on_compute_thread(
        evaluate(_models(arms), arms.baseline_id, sequences=chosen, tasks=tasks, on_progress=on_progress)
    )


def answer_sequences(plan: ReplayPlan, requests: pa.Table, baseline_id: str) -> list[AnswerSequence]:
    """The baseline's own answers of the first pass, with the prompts that they answer."""
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
    ]


def _models(arms: LoadedArms) -> dict[str, QualityModel]:
    models: dict[str, QualityModel] = {arm_id: BundledEngineModel(llm) for arm_id, llm in arms.engines.items()}
    for arm in arms.replay_arms:
        if arm.role == "aa":
            models[arm.arm_id] = RepeatedBaseline(models[arms.baseline_id])
    return models
