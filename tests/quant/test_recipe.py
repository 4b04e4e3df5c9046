from __future__ import annotations

import json
from typing import Any

import pytest

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.calibration.settings import CalibrationSettings
from quantgate_engine.quant.methods.awq import AwqOptions
from quantgate_engine.quant.methods.clipping import ClipSearch
from quantgate_engine.quant.methods.gptq import GptqOptions
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.recipe import GridException, Recipe, read_recipe
from quantgate_engine.quant.methods.smoothquant import SmoothQuantOptions

MIXED = Recipe(
    rounding="nearest",
    folding="awq",
    grid=Grid(bits=3, group_size=32, symmetric=False, clip=ClipSearch(least=0.7, steps=4)),
    exceptions=(GridException("*.down_proj", Grid(bits=8, group_size=None)), GridException("model.layers.0.*", None)),
    gptq=GptqOptions(damping=0.1, act_order=False),
    awq=AwqOptions(steps=3),
    smoothquant=SmoothQuantOptions(alpha=0.8),
    calibration=CalibrationSettings(sequences=3, tokens=5, seed=7),
)


@pytest.mark.parametrize("recipe", [Recipe(), MIXED])
def test_what_provenance_records_is_the_recipe(recipe: Recipe) -> None:
    assert read_recipe(json.loads(json.dumps(recipe.record()))) == recipe


def test_a_key_that_is_missing_has_its_default() -> None:
    assert read_recipe({"grid": {"bits": 8}}) == Recipe(grid=Grid(bits=8))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"rounding": "stochastic"}, r"recipe\.rounding: Input should be 'nearest' or 'gptq'"),
        ({"grid": {"bits": "four"}}, r"recipe\.grid\.bits: Input should be a valid integer"),
        ({"gird": {}}, r"recipe\.gird: a recipe has no such key"),
        ({"grid": {"clip": {"lowest": 0.5}}}, r"recipe\.grid\.clip\.lowest: a recipe has no such key"),
        (
            {"exceptions": [{"pattern": "*", "grid": None}, {"pattern": "*", "grid": {"size": 3}}]},
            r"recipe\.exceptions\.1\.grid\.size: a recipe has no such key",
        ),
        ({"grid": {"bits": 5}}, r"Grid\.bits is 5"),
    ],
)
def test_what_is_no_recipe_is_told_with_its_key(record: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_recipe(record)


def test_the_first_pattern_that_fits_a_layer_counts() -> None:
    assert MIXED.grid_of("model.layers.0.mlp.down_proj") == Grid(bits=8, group_size=None)
    assert MIXED.grid_of("model.layers.0.mlp.up_proj") is None
    assert MIXED.grid_of("model.layers.10.mlp.up_proj") == MIXED.grid


@pytest.mark.parametrize(
    ("recipe", "needed"),
    [
        (Recipe(rounding="nearest", grid=Grid()), False),
        (Recipe(rounding="gptq"), True),
        (Recipe(rounding="nearest", folding="smoothquant", grid=Grid()), True),
        (Recipe(rounding="nearest", grid=Grid(clip=ClipSearch())), True),
        (Recipe(rounding="nearest", grid=Grid(), exceptions=(GridException("*", Grid(clip=ClipSearch())),)), True),
    ],
)
def test_plain_rounding_alone_needs_no_text(recipe: Recipe, needed: bool) -> None:
    assert recipe.needs_text == needed


@pytest.mark.parametrize("field", ["rounding", "folding"])
def test_an_unknown_method_is_refused(field: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"Recipe\.{field} is 'best'; expected one of n"):
        Recipe(**{field: "best"})  # type: ignore[arg-type]
