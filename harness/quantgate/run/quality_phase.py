"""The quality tiers of a run: the answers of the replay compared token by token, and the tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pyarrow as pa

from quantgate.arms.tokenizer import RunTokenizer
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
    answers = answer_sequences(plan, requests, arms.baseline_id, arms.tokenizer)
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


def answer_sequences(
    plan: ReplayPlan, requests: pa.Table, baseline_id: str, tokenizer: RunTokenizer | None = None
) -> list[AnswerSequence]:
    """The baseline's own answers of the first pass, with their prompts; where the tokens of both are known.

    Of a server that sends text alone, the answer's tokens are its text tokenized again: any text that the baseline
    wrote serves to compare distributions over, also where the server had cut it into other tokens.
    """
    planned = {request.request_id: request for request in plan.requests}
    names = ["arm_id", "pass_index", "request_id", "status", "output_token_ids", "output_text"]
    sequences = []
    for row in requests.select(names).to_pylist():
        request = planned[row["request_id"]]
        if row["arm_id"] != baseline_id or row["pass_index"] != 0 or row["status"] != "finished":
            continue
        output_ids = row["output_token_ids"]
        if not output_ids and tokenizer is not None and row["output_text"]:
            output_ids = tokenizer.encode(row["output_text"], add_special_tokens=False)
        if output_ids and request.prompt_token_ids:
            cluster_id = request.session_id or request.request_id
            sequences.append(
                AnswerSequence(request.request_id, cluster_id, request.prompt_token_ids, tuple(output_ids))
            )
    return sequences
