"""The head's logits against a float64 product: the best ones are never rounded to 16 bits."""

from __future__ import annotations

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from torch import Tensor

from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.reference.head import CANDIDATES, FEW_ROWS, VOCABULARY_SLICE
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.types import DenseWeight

HIDDEN = 64
VOCABULARY = VOCABULARY_SLICE + 100


def inputs(rows: int, x_dtype: torch.dtype, weight_dtype: torch.dtype) -> tuple[Tensor, DenseWeight, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, HIDDEN, generator=generator).to(x_dtype)
    weight = torch.randn(VOCABULARY, HIDDEN, generator=generator).to(weight_dtype)
    return x, DenseWeight(weight), x.double() @ weight.double().t()


@pytest.mark.parametrize(
    ("rows", "x_dtype", "weight_dtype"),
    [
        (3, torch.float32, torch.float32),
        (3, torch.float32, torch.float16),
        (FEW_ROWS + 1, torch.bfloat16, torch.bfloat16),
    ],
    ids=["float32", "narrow storage", "many rows"],
)
def test_all_logits_are_exact(rows: int, x_dtype: torch.dtype, weight_dtype: torch.dtype, kernels: KernelSet) -> None:
    x, head, expected = inputs(rows, x_dtype, weight_dtype)
    logits = kernels.head(x, kernels.stored_table(head, x_dtype))
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits.double(), expected, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("rows", [1, FEW_ROWS])
def test_the_best_logits_of_few_rows_are_exact_and_the_rest_close(rows: int, kernels: KernelSet) -> None:
    x, head, expected = inputs(rows, torch.bfloat16, torch.bfloat16)
    logits = kernels.head(x, kernels.stored_table(head, torch.bfloat16))
    # Rounding may exchange tokens at the candidates' edge, so that half of them are surely among them.
    best = expected.topk(CANDIDATES // 2).indices
    torch.testing.assert_close(logits.double().gather(1, best), expected.gather(1, best), atol=2e-5, rtol=1e-5)
    torch.testing.assert_close(logits.double(), expected, atol=0.02, rtol=2.0**-8)
    assert torch.equal(logits.argmax(-1), expected.argmax(-1))


def test_a_tie_of_rounded_logits_is_decided(kernels: KernelSet) -> None:
    """256 and 256.5 are one number in bfloat16; the larger one comes second, where a tie would not choose it."""
    head = DenseWeight(torch.tensor([[256.0, 0.0], [256.0, 0.5]]).bfloat16())
    logits = kernels.head(torch.ones(1, 2).bfloat16(), kernels.stored_table(head, torch.bfloat16))
    assert logits.tolist() == [[256.0, 256.5]]


def test_paths_name_the_way_that_was_taken() -> None:
    kernels = ReferenceKernels()
    kernels.head(*inputs(1, torch.bfloat16, torch.bfloat16)[:2])
    kernels.head(*inputs(FEW_ROWS + 1, torch.bfloat16, torch.bfloat16)[:2])
    assert kernels.paths == {
        "head.rows<=32": "16-bit product, best 32 in float32",
        "head": "float32 product in slices",
    }


def test_what_is_scored_again_are_the_best_of_the_rounded_logits() -> None:
    """A spread of 40 leaves no ties at the candidates' edge: what is rounded and what is not must be the same words."""
    x, head, _ = inputs(5, torch.bfloat16, torch.bfloat16)
    logits = ReferenceKernels().head(x * 40, head)
    rounded = torch.nn.functional.linear(x * 40, head.weight).float()
    threshold = rounded.topk(CANDIDATES + 1).values
    clear = threshold[:, -2] > threshold[:, -1]
    assert clear.any()
    scored_again = (logits != rounded)[clear]
    assert (scored_again.sum(-1) <= CANDIDATES).all()
    assert (rounded[clear].where(scored_again, float("inf")).amin(-1) >= threshold[clear, -2]).all()


def test_all_words_may_be_equal(kernels: KernelSet) -> None:
    head = DenseWeight(torch.ones(1000, 8).bfloat16())
    logits = kernels.head(torch.ones(2, 8).bfloat16(), kernels.stored_table(head, torch.bfloat16))
    assert torch.equal(logits, torch.full((2, 1000), 8.0))


@pytest.mark.parametrize("rows", [1, FEW_ROWS])
def test_panels_give_every_logit_of_few_rows_exactly(rows: int) -> None:
    kernels = kernel_set_or_skip("cpu")
    x, head, expected = inputs(rows, torch.bfloat16, torch.bfloat16)
    logits = kernels.head(x, kernels.stored_table(head, torch.bfloat16))
    torch.testing.assert_close(logits.double(), expected, atol=2e-5, rtol=1e-5)
    assert kernels.paths == {"head": "cpp, panels"}
