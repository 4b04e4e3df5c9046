from __future__ import annotations

import pytest

from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.model.tokenizer import load_tokenizer
from quantgate_engine.quant.calibration.layer_weights import linear_inputs
from quantgate_engine.quant.calibration.settings import CalibrationSettings
from quantgate_engine.quant.calibration.text import draw_tokens
from quantgate_engine.quant.calibration.walk import CalibrationWalk, embedded
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.group_fit import require_fit
from quantgate_engine.quant.methods.recipe import Recipe

MODEL = "smollm2-135m-instruct"


@pytest.mark.model
def test_the_default_recipe_halves_what_plain_rounding_costs_the_bundled_models_first_layer() -> None:
    folder = resolve_model(MODEL).path
    config, tokenizer = read_decoder_config(folder), load_tokenizer(MODEL)
    drawn = draw_tokens(
        lambda text: tokenizer.encode(text, add_special_tokens=False), CalibrationSettings(sequences=4, tokens=256)
    )
    errors = []
    for recipe in (Recipe(), Recipe(rounding="nearest", grid=Grid())):
        require_fit(recipe, linear_inputs(config))
        with Checkpoint(folder) as checkpoint:
            walk = CalibrationWalk(checkpoint, config, recipe, embedded(checkpoint, config, drawn.token_ids))
            layer = walk.quantize_next()
        errors.append([linear.output_error or 0.0 for linear in layer.linears.values()])
    assert all(found < 0.5 * plain for found, plain in zip(*errors, strict=True)), errors
