"""Steps of which only some rows are read: those rows come out, and the cache is what the whole step makes it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.own_rows import on_threads
from tests.kernels.step_arms import FAMILIES, SCHEMES, Model, cache_of, load_model, make_program, step_functions
from tests.kernels.step_scripts import BLOCK_SIZE, SCRIPTS
from torch import Tensor

from quantgate_engine.executor.batch_input import rows_of
from quantgate_kernels.cpu.library import load_functions
from quantgate_kernels.types import KVLayer


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kernel_set_or_skip("cpu")
    return tmp_path_factory.mktemp("checkpoint")


def first_step(model: Model, output_rows: list[int] | None) -> tuple[Tensor, tuple[KVLayer, ...]]:
    """The first step of several prompts -> (its hidden states, the cache after it)."""
    script = SCRIPTS["prefills"]
    _, sequences = next(script.steps())
    cache = cache_of(model, script.num_blocks, "auto", torch.bfloat16)
    program = make_program(model, step_functions(load_functions()))
    hidden = program.hidden_states(rows_of(sequences, BLOCK_SIZE), cache, output_rows)
    return hidden, cache


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("wanted", [[], [0], [2, 3], [1, 4, 9, 10, 20, 30]], ids=str)
def test_wanted_rows_come_out_and_nothing_else_changes(wanted: list[int], scheme: str, checkpoint: Path) -> None:
    model = load_model(checkpoint, scheme, **FAMILIES["llama"])
    everything, full_cache = first_step(model, None)
    assert everything.shape[0] > 31

    chosen, cache = first_step(model, wanted)

    assert chosen.shape == (len(wanted), everything.shape[1])
    if wanted:
        # Fewer rows are summed in another order: the last layer may differ by roundings, a wrong row by a whole row.
        noise = (chosen - everything[wanted]).square().mean().sqrt()
        apart = (everything[[row + 1 for row in wanted]] - everything[wanted]).square().mean().sqrt()
        assert noise < 0.01 * apart
    for layer, full_layer in zip(cache, full_cache, strict=True):
        for tensor, full in zip(layer.tensors(), full_layer.tensors(), strict=True):
            torch.testing.assert_close(tensor, full, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("wanted", [None, [], [0], [1, 4, 9, 10, 20, 30]], ids=str)
def test_the_next_tokens_are_the_best_ones_of_the_hidden_states(
    wanted: list[int] | None, scheme: str, checkpoint: Path
) -> None:
    model, script = load_model(checkpoint, scheme, **FAMILIES["llama"]), SCRIPTS["prefills"]
    program = make_program(model, step_functions(load_functions()))
    _, sequences = next(script.steps())
    rows = rows_of(sequences, BLOCK_SIZE)
    for threads in (1, 2, 3):
        with on_threads(threads):
            cache = cache_of(model, script.num_blocks, "auto", torch.bfloat16)
            expected = program.best_tokens(program.hidden_states(rows, cache, wanted)).tolist()
            cache = cache_of(model, script.num_blocks, "auto", torch.bfloat16)
            assert program.next_tokens(rows, cache, wanted) == expected
            assert len(expected) == (len(rows.token_ids) if wanted is None else len(wanted))
