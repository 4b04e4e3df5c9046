"""The final norm and the head of the step program: every logit to its last digits, and the best token to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.own_rows import on_threads
from tests.kernels.product_cases import draw
from tests.kernels.product_errors import UNIT_BFLOAT16, gamma
from tests.kernels.step_arms import FAMILIES, Model, dense, load_model, make_program, step_functions
from torch import Tensor

from quantgate_kernels.cpu.decoder_step import CpuStepProgram
from quantgate_kernels.cpu.library import load_functions
from quantgate_kernels.step_program import NO_BEST_TOKEN

ROWS = (1, 2, 4, 5, 12, 13, 17, 40)
FAMILY = "llama, untied, biases"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kernel_set_or_skip("cpu")
    return tmp_path_factory.mktemp("model")


@pytest.fixture
def model(folder: Path) -> Model:
    return load_model(folder, "bf16", **FAMILIES[FAMILY])


@pytest.fixture
def program(model: Model) -> CpuStepProgram:
    return make_program(model, step_functions(load_functions()))


def residual(model: Model, rows: int, size: float = 1.0) -> Tensor:
    return draw(rows, model.config.hidden_size, seed=rows) * size


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_logits_are_rounded_once_before_the_product_and_never_after(
    size: float, model: Model, program: CpuStepProgram
) -> None:
    head, hidden = dense(model.weights.head).double(), model.config.hidden_size
    for rows in ROWS:
        x = residual(model, rows, size)
        wide = x.double()
        normed = wide / (wide.square().mean(-1, keepdim=True) + model.config.rms_norm_eps).sqrt()
        normed = normed * model.weights.final_norm.double()
        magnitude = normed.abs() @ head.abs().t()
        # The norm: a sum of squares, a division, a root, two products; the head: a sum of products.
        bound = (UNIT_BFLOAT16 + gamma(2 * hidden + 8)) * magnitude
        logits = program.logits(x)
        assert logits.dtype == torch.float32
        assert ((logits.double() - normed @ head.t()).abs() <= bound).all(), f"{rows} rows"


def test_the_best_token_is_that_of_the_logits_on_any_threads(model: Model, program: CpuStepProgram) -> None:
    for rows in ROWS:
        x = residual(model, rows)
        with on_threads(1):
            logits = program.logits(x)
        for threads in (1, 2, 3):
            with on_threads(threads):
                assert torch.equal(program.logits(x), logits)
                assert torch.equal(program.best_tokens(x), logits.argmax(-1)), f"{rows} rows, {threads} threads"


def test_the_first_of_equal_logits_is_the_best(model: Model) -> None:
    """All tokens alike, and then all but the first, which is worse: no thread that is early can change the answer."""
    head = dense(model.weights.head)
    with torch.inference_mode():
        head[:] = head[0].clone()
        x = residual(model, 40)
        alike = make_program(model, step_functions(load_functions()))
        signs = alike.logits(x)[:, 0].sign()
        # Made so that every row's logits are positive, and token 0 has a smaller one.
        x = x * signs.unsqueeze(1)
        head[0] = head[0] * 0.5
    second = make_program(model, step_functions(load_functions()))
    for threads in (1, 2, 3):
        with on_threads(threads):
            assert alike.best_tokens(x).tolist() == [0] * 40
            assert second.best_tokens(x).tolist() == [1] * 40


@pytest.mark.parametrize("rows", [1, 5, 40])
@pytest.mark.parametrize("number", [float("nan"), float("-inf"), 1e30])
def test_a_row_that_overflows_has_no_best_token(
    number: float, rows: int, model: Model, program: CpuStepProgram
) -> None:
    """The norm makes NaN of it, or 0 where its squares alone overflow; other rows have the tokens that they had."""
    clean = residual(model, rows)
    dirty = clean.clone()
    dirty[rows // 2, 3] = number
    expected = program.logits(clean).argmax(-1)
    expected[rows // 2] = NO_BEST_TOKEN
    for threads in (1, 2, 3):
        for _ in range(20):
            with on_threads(threads):
                assert torch.equal(program.best_tokens(dirty), expected)
