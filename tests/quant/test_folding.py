"""AWQ and SmoothQuant: what folding may not change, and what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.engine.tiny_model import save_tiny_model
from tests.quant.correlated import correlated_rows, hessian_of, random_weight

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.quant.calibration.float_layer import STAGES, FloatLayer
from quantgate_engine.quant.calibration.layer_weights import DOWN, OUTPUT, read_layer
from quantgate_engine.quant.methods.awq import AwqOptions, find_awq_factors
from quantgate_engine.quant.methods.folds import FOLDS, apply_fold, as_read, outputs_of, over_readers
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.output_error import output_error
from quantgate_engine.quant.methods.rounding import round_to_nearest
from quantgate_engine.quant.methods.smoothquant import SmoothQuantOptions, smoothing_factors

FAMILIES = {
    "one reader of each value head": {"num_key_value_heads": 4},
    "biases everywhere": {"attention_bias": True, "mlp_bias": True},
    "qwen3": {"model_type": "qwen3", "head_dim": 16},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_folds_leave_the_float_layer_as_it_is(family: str, tmp_path: Path) -> None:
    save_tiny_model(tmp_path, **FAMILIES[family])  # type: ignore[arg-type]
    config = read_decoder_config(tmp_path)
    hidden = torch.randn(2, 9, config.hidden_size, generator=torch.Generator().manual_seed(0))
    with Checkpoint(tmp_path) as checkpoint:
        plain, folded = (read_layer(checkpoint, config, 1) for _ in range(2))
    before = {name: tensor.clone() for name, tensor in folded.linears.items()}
    for seed, fold in enumerate(FOLDS):
        factors = torch.exp(torch.randn(outputs_of(folded, fold.source), generator=torch.Generator().manual_seed(seed)))
        apply_fold(folded, fold, factors, config.head_dim)
    assert all(not torch.equal(folded.linears[name], before[name]) for name in before)

    def output(layer: FloatLayer) -> torch.Tensor:
        between = hidden + layer.linear(layer.attended(hidden), OUTPUT)
        return between + layer.linear(layer.gated(between), DOWN)

    expected, found = (output(FloatLayer(config, weights, 1, 9)) for weights in (plain, folded))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_folds_stand_in_the_order_of_the_stages() -> None:
    """Statistics of a stage are those of the fold with the same place."""
    assert [fold.targets for fold in FOLDS] == [stage.linears for stage in STAGES]


def test_a_value_head_has_one_factor_for_all_that_read_it() -> None:
    factors = torch.tensor([1.0, 2.0, 3.0, 4.0])  # two heads of two values
    assert as_read(factors, 8, head_dim=2).tolist() == [1, 2, 1, 2, 3, 4, 3, 4]
    statistic = torch.tensor([1.0, 9.0, 5.0, 2.0, 3.0, 4.0, 7.0, 1.0])
    assert over_readers(statistic, 4, head_dim=2).tolist() == [5, 9, 7, 4]


@pytest.mark.parametrize("factor", [0.0, -1.0, float("inf"), float("nan")])
def test_factors_that_cannot_be_divided_out_are_refused(factor: float, tmp_path: Path) -> None:
    save_tiny_model(tmp_path)
    config = read_decoder_config(tmp_path)
    with Checkpoint(tmp_path) as checkpoint:
        weights = read_layer(checkpoint, config, 0)
    with pytest.raises(ConfigurationError, match="input_layernorm and what reads it are not all above 0"):
        apply_fold(weights, FOLDS[0], torch.full((config.hidden_size,), factor), config.head_dim)


def test_awq_makes_outputs_better_where_few_inputs_are_large() -> None:
    rows = correlated_rows(500, 64, seed=1) * 0.1
    rows[:, [5, 40]] *= 50
    weight, hessian, grid = random_weight(32, 64, seed=1), hessian_of(rows).float(), Grid(bits=3, group_size=32)
    factors = find_awq_factors([(weight, grid)], rows.abs().mean(0), hessian, AwqOptions(), head_dim=16)
    assert factors[[5, 40]].min() > 2 * factors.median()
    plain = output_error(weight - round_to_nearest(weight, grid).dequantize(), hessian)
    scaled = output_error(weight - round_to_nearest(weight * factors, grid).dequantize() / factors, hessian)
    assert scaled < 0.6 * plain


@pytest.mark.parametrize("seed", range(5))
def test_awq_is_never_worse_than_leaving_all_as_it_is(seed: int) -> None:
    rows = correlated_rows(200, 64, seed)
    weight, hessian, grid = random_weight(16, 64, seed), hessian_of(rows).float(), Grid(bits=4, group_size=32)
    factors = find_awq_factors([(weight, grid)], rows.abs().mean(0), hessian, AwqOptions(steps=5), head_dim=16)
    plain = output_error(weight - round_to_nearest(weight, grid).dequantize(), hessian)
    scaled = output_error(weight - round_to_nearest(weight * factors, grid).dequantize() / factors, hessian)
    assert scaled <= plain * (1 + 1e-5)


def test_smoothing_is_the_papers_equation() -> None:
    inputs, weights = torch.tensor([16.0, 1.0, 0.0]), torch.tensor([4.0, 1.0, 0.25])
    found = smoothing_factors(inputs, weights, SmoothQuantOptions(alpha=0.5))
    torch.testing.assert_close(found, torch.tensor([2.0, 1.0, (1e-5) ** 0.5 / 0.5]))
    moved_altogether = smoothing_factors(inputs, weights, SmoothQuantOptions(alpha=1.0))
    torch.testing.assert_close(inputs / moved_altogether, torch.tensor([1.0, 1.0, 0.0]))


@pytest.mark.parametrize("alpha", [-0.1, 1.1])
def test_alpha_is_a_share(alpha: float) -> None:
    with pytest.raises(ConfigurationError, match=r"SmoothQuantOptions\.alpha is"):
        SmoothQuantOptions(alpha=alpha)
