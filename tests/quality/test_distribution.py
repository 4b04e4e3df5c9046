"""The distribution tier against hand-computed values and torch.distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quality.table_model import TableModel, chat, random_table
from torch.distributions import Categorical, kl_divergence

from quantgate.quality.distribution import AnswerSequence
from quantgate.quality.evaluate import evaluate
from quantgate.quality.quality_model import GeneratedAnswer
from quantgate.quality.repeated_baseline import RepeatedBaseline
from quantgate.quality.rows import QualityRow, quality_table
from quantgate.quality.whole_divergence import compare_positions

SEQUENCE = AnswerSequence("r-1", "session-1", prompt_ids=(3, 1, 4), output_ids=(1, 5, 9, 2))


def _values(rows: list[QualityRow], arm_id: str) -> dict[str, float]:
    return {row.metric: row.value for row in rows if row.arm_id == arm_id}


def test_two_tokens_worked_by_hand() -> None:
    baseline = torch.tensor([[0.5, 0.5], [0.75, 0.25]]).log()
    candidate = torch.tensor([[0.25, 0.75], [0.75, 0.25]]).log()
    compared = compare_positions(baseline, candidate, [0, 1])
    assert compared.kl == pytest.approx([0.5 * math.log(2) + 0.5 * math.log(2 / 3), 0.0], abs=1e-7)
    assert compared.nll_delta == pytest.approx([math.log(2), 0.0], abs=1e-7)


def test_equal_distributions_are_at_distance_zero() -> None:
    logits = random_table(0)
    compared = compare_positions(logits, logits + 7.0, list(range(logits.shape[0])))
    assert compared.kl.max() < 1e-12
    assert np.abs(compared.nll_delta).max() < 1e-5
    assert compared.metrics()["first_divergence_fraction"] == 1.0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 20.0))
def test_kl_equals_torch_distributions(seed: int, scale: float) -> None:
    baseline, candidate = random_table(seed, 11) * scale, random_table(seed + 1, 11) * scale
    compared = compare_positions(baseline, candidate, [0] * 11)
    expected = kl_divergence(Categorical(logits=baseline.double()), Categorical(logits=candidate.double()))
    assert compared.kl == pytest.approx(expected.numpy(), rel=1e-9, abs=1e-12)
    assert (compared.kl >= 0).all()


def test_a_token_that_the_baseline_excludes_adds_nothing() -> None:
    baseline = torch.tensor([[0.0, 0.0, -torch.inf]])
    candidate = torch.tensor([[0.0, 0.0, -torch.inf]])
    assert compare_positions(baseline, candidate, [0]).kl == pytest.approx([0.0])


def test_a_token_that_the_candidate_alone_excludes_is_infinitely_far() -> None:
    baseline = torch.tensor([[0.0, 0.0]])
    candidate = torch.tensor([[0.0, -torch.inf]])
    assert compare_positions(baseline, candidate, [0]).kl.tolist() == [math.inf]


def test_agreement_and_divergence_positions() -> None:
    tops = [2, 0, 1, 1]
    baseline = torch.nn.functional.one_hot(torch.tensor([2, 0, 2, 1]), 3) * 5.0
    candidate = torch.nn.functional.one_hot(torch.tensor(tops), 3) * 5.0
    metrics = compare_positions(baseline, candidate, [0, 0, 0, 0]).metrics()
    assert metrics["top1_agreement"] == 0.75
    assert metrics["first_token_agreement"] == 1.0
    assert metrics["first_divergence_fraction"] == 0.5


def test_shapes_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected \[3, vocabulary\] twice"):
        compare_positions(torch.zeros(2, 5), torch.zeros(2, 5), [0, 1, 2])


def test_only_answer_positions_are_compared_and_each_by_the_token_before_it() -> None:
    baseline, candidate = TableModel(random_table(1)), TableModel(random_table(2))
    (rows,) = evaluate({"fp16": baseline, "int4": candidate}, "fp16", sequences=[SEQUENCE])
    before = [4, 1, 5, 9]
    p, q = Categorical(logits=baseline.table[before].double()), Categorical(logits=candidate.table[before].double())
    expected = kl_divergence(p, q)
    tokens = torch.tensor(SEQUENCE.output_ids)
    values = _values(rows, "int4")
    assert values["kl"] == pytest.approx(float(expected.mean()), rel=1e-9)
    assert values["kl_p99"] == pytest.approx(float(np.quantile(expected.numpy(), 0.99)), rel=1e-9)
    assert values["nll_delta"] == pytest.approx(float((p.log_prob(tokens) - q.log_prob(tokens)).mean()), rel=1e-9)
    assert {(row.item_id, row.cluster_id, row.tier) for row in rows} == {("r-1", "session-1", "distribution")}


def test_the_baseline_is_computed_once_for_all_candidates() -> None:
    baseline = TableModel(random_table(1))
    arms = {"fp16": baseline, "int8": TableModel(random_table(2)), "int4": TableModel(random_table(3))}
    batches = list(evaluate(arms, "fp16", sequences=[SEQUENCE, SEQUENCE]))
    assert baseline.logits_calls == [(SEQUENCE.prompt_ids, (SEQUENCE.output_ids,), None)] * 2
    assert {row.arm_id for row in batches[0]} == {"int8", "int4"}


def test_the_repeated_baseline_reads_in_other_chunks_and_has_other_batch_mates() -> None:
    baseline = TableModel(random_table(1), answers={"a": "1", "b": "2", "c": "3"})
    repeated = RepeatedBaseline(baseline, chunk_tokens=16)
    (rows,) = evaluate({"fp16": baseline, "fp16-aa": repeated}, "fp16", sequences=[SEQUENCE])
    assert [chunk for _, _, chunk in baseline.logits_calls] == [None, 16]
    assert _values(rows, "fp16-aa")["kl"] == 0.0
    outputs = repeated.generate([chat(text) for text in "abc"], max_tokens=4)
    assert baseline.generate_calls == [["c", "b", "a"]]
    assert outputs == [GeneratedAnswer(text, 1, truncated=False) for text in "123"]


def test_more_planted_noise_means_more_divergence_and_less_agreement() -> None:
    table = random_table(1) * 3
    noise = random_table(2)
    arms = {"base": TableModel(table)} | {f"{sigma}": TableModel(table + sigma * noise) for sigma in (0.05, 0.3, 2.0)}
    sequences = [AnswerSequence(f"r-{n}", f"r-{n}", (n, n + 1), tuple(range(n, n + 8))) for n in range(40)]
    rows = [row for batch in evaluate(arms, "base", sequences=sequences) for row in batch]
    kl = [np.mean([row.value for row in rows if (row.arm_id, row.metric) == (arm, "kl")]) for arm in list(arms)[1:]]
    agreement = [
        np.mean([row.value for row in rows if (row.arm_id, row.metric) == (arm, "top1_agreement")])
        for arm in list(arms)[1:]
    ]
    assert kl[0] < 0.01 < kl[1] < kl[2]
    assert agreement[0] > agreement[1] > agreement[2]


def test_an_empty_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="r-9 needs at least one"):
        AnswerSequence("r-9", "r-9", (1,), ())


def test_rows_fit_the_stored_schema() -> None:
    (rows,) = evaluate({"a": TableModel(random_table(1)), "b": TableModel(random_table(2))}, "a", sequences=[SEQUENCE])
    table = quality_table(rows)
    assert table.num_rows == 6
    assert table.column("detail").to_pylist() == ['{"positions": 4}'] * 6
