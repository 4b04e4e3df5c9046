"""Which rows of a step go to which attention kernel; needs no Triton."""

from __future__ import annotations

import pytest
import torch
from tests.gpu.paged_cases import paged_step, random_contexts

from quantgate_kernels.gpu.attention_plan import AttentionPlans
from quantgate_kernels.types import AttentionBatch


@pytest.fixture
def mixed() -> AttentionBatch:
    """A decode, a chunk, a prompt of one token and a prompt."""
    return paged_step(random_contexts([90, 40, 1, 7], 1, 16, torch.float32), [1, 10, 1, 7], 16)[1]


def test_rows_alone_are_split_from_those_of_prefills(mixed: AttentionBatch) -> None:
    plan = AttentionPlans(split_decodes=True).of(mixed, 4)
    assert plan.decodes is not None
    assert plan.decodes.tolist() == [0, 2]
    assert plan.longest == 90
    assert plan.tiles is not None
    assert plan.tiles.tolist() == [[1, 8], [1, 4], [1, 0], [3, 4], [3, 0]]


def test_without_splits_every_row_is_in_a_tile(mixed: AttentionBatch) -> None:
    plan = AttentionPlans(split_decodes=False).of(mixed, 16)
    assert plan.decodes is None
    assert plan.tiles is not None
    assert plan.tiles.tolist() == [[0, 0], [1, 0], [2, 0], [3, 0]]


def test_a_step_of_decodes_has_no_tiles() -> None:
    _, batch = paged_step(random_contexts([5, 20], 1, 16, torch.float32), [1, 1], 16)
    assert AttentionPlans(split_decodes=True).of(batch, 4).tiles is None


def test_the_layers_of_a_step_share_a_plan_and_the_next_step_has_its_own(mixed: AttentionBatch) -> None:
    plans = AttentionPlans(split_decodes=True)
    first = plans.of(mixed, 4)
    assert plans.of(mixed, 4) is first
    assert plans.of(mixed, 8) is not first
    _, other = paged_step(random_contexts([5, 20], 1, 16, torch.float32), [1, 1], 16)
    assert plans.of(other, 4) is not first
