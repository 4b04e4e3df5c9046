"""Steps of which only some rows are read: those rows come out, and the cache is what the whole step makes it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.step_arms import FAMILIES, SCHEMES, Model, cache_of, load_model, make_program, step_functions
from tests.kernels.step_scripts import BLOCK_SIZE, SCRIPTS
from torch import Tensor

from quantgate_engine.executor.batch_input import build_batch
from quantgate_engine.model.rope import RotaryTable
from quantgate_kernels.cpu.library import load_functions
from quantgate_kernels.types import KVLayer

CPU = torch.device("cpu")
POSITIONS = 512


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kernel_set_or_skip("cpu")
    return tmp_path_factory.mktemp("checkpoint")


def first_step(model: Model, output_rows: Tensor | None) -> tuple[Tensor, tuple[KVLayer, ...]]:
    """The first step of several prompts -> (its hidden states, the cache after it)."""
    script = SCRIPTS["prefills"]
    _, sequences = next(script.steps())
    cache = cache_of(model, script.num_blocks, "auto", torch.bfloat16)
    token_ids, batch = build_batch(sequences, BLOCK_SIZE, CPU)
    rope = RotaryTable(model.config.rope.rotation(model.config.head_dim, POSITIONS), POSITIONS, CPU)
    program = make_program(model, step_functions(load_functions()))
    hidden = program.hidden_states(token_ids, cache, batch, *rope.lookup(batch.positions), output_rows)
    return hidden, cache


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("wanted", [[], [0], [2, 3], [1, 4, 9, 10, 20, 30]], ids=str)
def test_wanted_rows_come_out_and_nothing_else_changes(wanted: list[int], scheme: str, checkpoint: Path) -> None:
    model = load_model(checkpoint, scheme, **FAMILIES["llama"])
    everything, full_cache = first_step(model, None)
    assert everything.shape[0] > 31

    chosen, cache = first_step(model, torch.tensor(wanted, dtype=torch.int64))

    assert chosen.shape == (len(wanted), everything.shape[1])
    if wanted:
        # Fewer rows are summed in another order: the last layer may differ by roundings, a wrong row by a whole row.
        noise = (chosen - everything[wanted]).square().mean().sqrt()
        apart = (everything[[row + 1 for row in wanted]] - everything[wanted]).square().mean().sqrt()
        assert noise < 0.01 * apart
    for layer, full_layer in zip(cache, full_cache, strict=True):
        for tensor, full in zip(layer.tensors(), full_layer.tensors(), strict=True):
            torch.testing.assert_close(tensor, full, rtol=0, atol=0, equal_nan=True)
