from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.quant.calibration.layer_weights import linear_inputs
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.group_fit import require_fit
from quantgate_engine.quant.methods.recipe import GridException, Recipe


def test_groups_that_fit_no_row_are_told_with_those_that_do(tmp_path: Path) -> None:
    save_tiny_model(tmp_path)  # 128 inputs, and 192 of down
    inputs = linear_inputs(read_decoder_config(tmp_path))
    assert len(inputs) == 3 * 7
    with pytest.raises(ConfigurationError) as refusal:
        require_fit(Recipe(grid=Grid(group_size=128)), inputs)
    assert str(refusal.value) == (
        "Groups of 128 do not divide the rows of down_proj (192 inputs); use groups of 32 or 64, or whole rows."
    )
    for size in (32, 64, None):
        require_fit(Recipe(grid=Grid(group_size=size)), inputs)


def test_only_layers_that_get_the_grid_must_fit_it() -> None:
    inputs = {"model.layers.0.mlp.up_proj": 256, "model.layers.0.mlp.down_proj": 100}
    require_fit(Recipe(grid=Grid(group_size=128), exceptions=(GridException("*.down_proj", None),)), inputs)
    with pytest.raises(ConfigurationError, match=r"Groups of 128 .* down_proj \(100 inputs\); use whole rows\."):
        require_fit(Recipe(grid=Grid(group_size=128)), inputs)
