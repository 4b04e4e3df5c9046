"""Arms that take turns, arms that give less, and items that fail: the same rows in both orders, and what is said."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from tests.quality.fake_server import SETTINGS, FakeServer, LenientTokenizer, like_llama_cpp, like_vllm, model_on, ours
from tests.quality.table_model import TableModel, random_table
from tests.quality.test_evaluate import ANSWERS, SEQUENCES, TASKS

from quantgate.capabilities.probe import probe
from quantgate.capabilities.tier_support import not_measurable, partial
from quantgate.quality import sequence_batch
from quantgate.quality.distribution import AnswerSequence
from quantgate.quality.evaluate import Evaluation, Order, evaluate
from quantgate.quality.openai_model import OpenAIModel
from quantgate.quality.quality_model import ArmSupport, Continuations, ItemFailure, QualityModel
from quantgate.quality.repeated_baseline import RepeatedBaseline
from quantgate.quality.rows import QualityRow
from quantgate.quality.scores import Scores, listed_scores
from quantgate.store.tier_status import QualityTier, TierStatus
from quantgate_engine.errors import RunError

ORDERS: tuple[Order, ...] = ("items", "arms")
TABLES = {"fp16": random_table(1), "int8": random_table(1) + 0.1 * random_table(2), "int4": random_table(3)}


def table_arms(**changes: Any) -> dict[str, QualityModel]:
    arms: dict[str, QualityModel] = {
        arm: TableModel(table, answers=ANSWERS, **changes) for arm, table in TABLES.items()
    }
    return arms | {"fp16-aa": RepeatedBaseline(arms["fp16"])}


def over_http(server: FakeServer) -> OpenAIModel:
    server.answers = dict(ANSWERS) | {"Reply": "yes"}
    return model_on(server, asyncio.run(probe(server, SETTINGS, LenientTokenizer())))


def rows_of(evaluation: Evaluation) -> list[QualityRow]:
    return list(itertools.chain.from_iterable(evaluation))


def evaluated(
    arms: dict[str, QualityModel], order: Order = "items", **changes: Any
) -> tuple[list[Any], list[TierStatus]]:
    evaluation = evaluate(arms, "fp16", sequences=SEQUENCES, tasks=TASKS, order=order, batch_items=2, **changes)
    return rows_of(evaluation), evaluation.statuses


def status_of(statuses: Sequence[TierStatus], tier: QualityTier, arm_id: str) -> TierStatus:
    return next(status for status in statuses if (status.tier, status.arm_id) == (tier, arm_id))


def metrics(rows: Sequence[QualityRow], arm_id: str, tier: str = "distribution") -> set[str]:
    return {row.metric for row in rows if (row.arm_id, row.tier) == (arm_id, tier)}


def test_both_orders_give_the_same_rows_and_statuses() -> None:
    assert evaluated(table_arms(), "items") == evaluated(table_arms(), "arms")


@pytest.mark.parametrize("order", ORDERS)
def test_a_run_over_our_servers_is_a_run_in_process(order: Order) -> None:
    served: dict[str, QualityModel] = {arm: over_http(ours(table=table)) for arm, table in TABLES.items()}
    served["fp16-aa"] = RepeatedBaseline(served["fp16"])
    rows, statuses = evaluated(served, order)
    expected, _ = evaluated(table_arms())
    assert sorted(rows, key=repr) == sorted(expected, key=repr)
    assert {status.status for status in statuses} == {"exact"}


@pytest.mark.parametrize("order", ORDERS)
def test_all_arms_are_held_to_the_poorest(order: Order) -> None:
    arms = table_arms() | {"int4": over_http(like_vllm(table=TABLES["int4"]))}
    rows, statuses = evaluated(arms, order)
    for arm_id in ("int8", "int4", "fp16-aa"):
        assert {"kl_topk", "top1_agreement", "nll_delta"} <= metrics(rows, arm_id)
        assert "kl" not in metrics(rows, arm_id)
    assert {row.detail for row in rows if row.metric == "kl_topk" and row.arm_id == "int8"} != {None}
    found = status_of(statuses, "distribution", "int8")
    assert found.status == "partial"
    assert "only the 20 likeliest tokens are compared, all that int4 lists" in found.reason
    assert status_of(statuses, "likelihood", "int4").status == "exact"
    whole, _ = evaluated(table_arms())
    bound = {row.item_id: row.value for row in rows if (row.arm_id, row.metric) == ("int4", "kl_topk")}
    for row in whole:
        if (row.arm_id, row.metric) == ("int4", "kl"):
            assert 0 < bound[row.item_id] <= row.value
    same = {"nll_delta", "top1_agreement", "first_token_agreement", "gold_logprob", "gold_preferred"}
    expected = {(r.arm_id, r.item_id, r.metric): r.value for r in whole if r.metric in same}
    assert {(r.arm_id, r.item_id, r.metric): pytest.approx(r.value) for r in rows if r.metric in same} == expected


@pytest.mark.parametrize("order", ORDERS)
def test_a_censored_item_has_no_likelihood_on_any_arm(order: Order) -> None:
    """An arm that lists 30 of 96 tokens a position does not know the log-prob of the others."""
    arms = table_arms() | {"int4": over_http(like_llama_cpp(table=TABLES["int4"], cap=30))}
    rows, statuses = evaluated(arms, order)
    kept = {
        arm_id: {row.item_id for row in rows if (row.arm_id, row.metric) == (arm_id, "gold_logprob")} for arm_id in arms
    }
    assert len(set(map(frozenset, kept.values()))) == 1
    asked = {item.id for task in TASKS for item in task.items}
    censored = asked - kept["int4"]
    assert censored
    found = status_of(statuses, "likelihood", "int4")
    assert found.status == "partial"
    assert f"{len(censored)} of {len(asked)} items have a token" in found.reason
    assert status_of(statuses, "likelihood", "int8").status == "exact"
    told = {arm: {r.item_id for r in rows if (r.arm_id, r.metric) == (arm, "nll_delta")} for arm in ("int8", "int4")}
    assert told["int8"] == told["int4"]
    assert {r.item_id for r in rows if r.metric == "kl_topk"} == {sequence.request_id for sequence in SEQUENCES}


def test_a_candidate_that_cannot_be_scored_leaves_the_others_as_they_are() -> None:
    silent = ArmSupport(
        distribution=not_measurable("the server gives no log-probs of given tokens"),
        likelihood=not_measurable("the server gives no log-probs of given tokens"),
    )
    arms = table_arms() | {"int4": TableModel(TABLES["int4"], answers=ANSWERS, support=silent)}
    rows, statuses = evaluated(arms)
    assert metrics(rows, "int4") == set()
    assert metrics(rows, "int8") >= {"kl", "nll_delta"}
    assert "correct" in metrics(rows, "int4", "task")
    assert "gold_preferred" not in metrics(rows, "int4", "task")
    found = status_of(statuses, "distribution", "int4")
    assert (found.status, found.reason) == ("not_measurable", "the server gives no log-probs of given tokens")


def test_without_the_baseline_nothing_can_be_compared() -> None:
    silent = ArmSupport(distribution=not_measurable("no tokenizer given"))
    arms = table_arms() | {"fp16": TableModel(TABLES["fp16"], answers=ANSWERS, support=silent)}
    rows, statuses = evaluated(arms)
    assert not [row for row in rows if row.tier == "distribution"]
    assert status_of(statuses, "distribution", "fp16").reason == "no tokenizer given"
    assert status_of(statuses, "distribution", "int8").reason == "the baseline: no tokenizer given"


def test_where_one_arm_takes_messages_alone_all_are_given_messages() -> None:
    told = ArmSupport(answers=partial("prompts go as messages under the server's own chat template"))
    arms = table_arms()
    poor = TableModel(TABLES["int4"], answers=ANSWERS, support=told)
    rows, statuses = evaluated(arms | {"int4": poor})
    baseline = arms["fp16"]
    assert isinstance(baseline, TableModel)
    assert all(text.startswith("own template") for call in baseline.generate_calls for text in call)
    found = status_of(statuses, "answers", "int8")
    assert (found.status, found.reason) == ("partial", "prompts go as messages, all that int4 takes")
    assert "correct" in metrics(rows, "int4", "task")


@dataclass
class Faulty(TableModel):
    """Fails the questions whose prompt ends with one of `broken`, and dies at the question after `dies_after`."""

    broken: tuple[int, ...] = ()
    dies_after: int = 1_000_000
    seen: list[Continuations] = field(default_factory=list)

    def score(
        self, questions: Sequence[Continuations], chunk_tokens: int | None = None
    ) -> list[list[Scores] | ItemFailure]:
        self.seen += questions
        if len(self.seen) > self.dies_after:
            raise RunError("The server is gone.")
        found = super().score(questions, chunk_tokens)
        return [
            ItemFailure("the request failed (timeout)") if question.prompt_ids[0] in self.broken else scored
            for question, scored in zip(questions, found, strict=True)
        ]


@pytest.mark.parametrize("order", ORDERS)
def test_an_item_that_failed_on_one_arm_is_reported_and_unpaired(order: Order) -> None:
    arms = table_arms() | {"int4": Faulty(TABLES["int4"], answers=ANSWERS, broken=(0,))}
    rows, statuses = evaluated(arms, order)
    kept = {arm: {r.item_id for r in rows if (r.arm_id, r.metric) == (arm, "kl")} for arm in ("int8", "int4")}
    assert kept == {"int8": {"r-0", "r-1"}, "int4": {"r-1"}}
    found = status_of(statuses, "distribution", "int4")
    assert found.status == "partial"
    assert found.in_words == "1 of 2 sequences failed (the first failure: the request failed (timeout))"


def test_a_tier_of_which_every_item_failed_was_not_measurable() -> None:
    arms = table_arms() | {"int4": Faulty(TABLES["int4"], answers=ANSWERS, broken=(0, 1))}
    _, statuses = evaluated(arms)
    assert status_of(statuses, "distribution", "int4").status == "not_measurable"


def test_a_failure_of_the_baseline_is_every_pairs() -> None:
    baseline = Faulty(TABLES["fp16"], answers=ANSWERS, broken=(0,))
    rows, statuses = evaluated(table_arms() | {"fp16": baseline, "fp16-aa": RepeatedBaseline(baseline)})
    assert {row.item_id for row in rows if row.metric == "kl"} == {"r-1"}
    assert "the baseline: the request failed" in status_of(statuses, "distribution", "int8").in_words
    assert status_of(statuses, "distribution", "fp16").status == "partial"


def test_an_arm_that_dies_leaves_the_rows_of_those_before_it() -> None:
    arms = table_arms() | {"int4": Faulty(TABLES["int4"], answers=ANSWERS, dies_after=1)}
    turns = {arm: arms[arm] for arm in ("fp16", "int8", "int4")}
    evaluation = evaluate(turns, "fp16", sequences=SEQUENCES, tasks=TASKS, order="arms")
    kept: list[QualityRow] = []
    with pytest.raises(RunError, match="The server is gone"):
        kept.extend(itertools.chain.from_iterable(evaluation))
    assert {row.arm_id for row in kept} == {"fp16", "int8"}
    expected, _ = evaluated({arm: table_arms()[arm] for arm in ("fp16", "int8")})
    assert sorted(kept, key=repr) == sorted(expected, key=repr)


def test_arms_take_turns_baseline_first_and_each_is_announced() -> None:
    told: list[str] = []
    arms = table_arms()
    swapped = {arm: arms[arm] for arm in ("int4", "fp16", "int8", "fp16-aa")}
    evaluated(swapped, "arms", before_arm=told.append)
    assert told == ["fp16", "int4", "int8", "fp16-aa"]
    told.clear()
    evaluated(swapped, "items", before_arm=told.append)
    assert told[:5] == ["fp16", "int4", "int8", "fp16-aa", "fp16"]


def test_what_memory_does_not_hold_is_compared_over_listed_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 sequences of 2 tokens over 96 tokens are 1,536 bytes."""
    monkeypatch.setattr(sequence_batch, "MOST_HELD_BYTES", 1536)
    assert "kl" in metrics(evaluated(table_arms(), "arms")[0], "int8")
    monkeypatch.setattr(sequence_batch, "MOST_HELD_BYTES", 1535)
    rows, statuses = evaluated(table_arms(), "arms")
    assert metrics(rows, "int8") >= {"kl_topk"}
    assert "kl" not in metrics(rows, "int8")
    assert "all that memory holds" in status_of(statuses, "distribution", "int8").reason
    assert "kl" in metrics(evaluated(table_arms(), "items")[0], "int8")


def test_a_tier_without_anything_to_measure_says_so() -> None:
    evaluation = evaluate(table_arms(), "fp16", tiers=("distribution",))
    assert rows_of(evaluation) == []
    assert {status.reason for status in evaluation.statuses} == {
        "the replay kept no answer of the baseline whose token ids are known"
    }


def test_a_tier_that_nobody_asked_for_has_no_status() -> None:
    evaluation = evaluate(table_arms(), "fp16", sequences=SEQUENCES)
    rows_of(evaluation)
    assert {status.tier for status in evaluation.statuses} == {"distribution"}


def test_sequences_are_asked_as_many_at_a_time_as_an_arm_serves_best() -> None:
    arms = table_arms() | {"int4": replace(TableModel(TABLES["int4"]), concurrency=3)}
    sequences = [AnswerSequence(f"r-{n}", f"r-{n}", (n,), (1,)) for n in range(7)]
    batches = list(evaluate(arms, "fp16", sequences=sequences))
    assert [len({row.item_id for row in batch}) for batch in batches] == [3, 3, 1]


def test_logits_of_another_vocabulary_are_a_failed_item() -> None:
    arms: dict[str, QualityModel] = {"fp16": TableModel(torch.zeros(9, 9)), "odd": TableModel(torch.zeros(9, 10))}
    evaluation = evaluate(arms, "fp16", sequences=[AnswerSequence("r", "r", (1,), (2,))])
    assert rows_of(evaluation) == []
    assert "9 tokens and 10" in status_of(evaluation.statuses, "distribution", "odd").in_words


def test_listed_and_whole_scores_are_never_mixed() -> None:
    from quantgate.quality.distribution import compare_scores
    from quantgate.quality.scores import WholeScores

    with pytest.raises(ValueError, match="reduce both first"):
        compare_scores(SEQUENCES[0], WholeScores(torch.zeros(2, 9)), listed_scores([None], [{}], 1), None)
