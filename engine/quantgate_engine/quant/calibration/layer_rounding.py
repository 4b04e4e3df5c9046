"""The linear layers of one decoder layer, rounded by a recipe as the walk comes to them."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.calibration.layer_weights import LayerWeights
from quantgate_engine.quant.calibration.quantized_layer import QuantizedLayer, QuantizedLinear
from quantgate_engine.quant.methods.gptq import quantize_gptq
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.hessian import HessianFactor, factorize
from quantgate_engine.quant.methods.output_error import output_error
from quantgate_engine.quant.methods.recipe import Recipe
from quantgate_engine.quant.methods.rounding import round_to_nearest


class LayerRounding:
    """Rounds weights and puts what their codes stand for in their place, so that what is computed next sees it.

    grids: of each linear layer, by its name in the layer; None for one that stays as it is.
    """

    def __init__(self, weights: LayerWeights, recipe: Recipe, prefix: str) -> None:
        self.grids: dict[str, Grid | None] = {name: recipe.grid_of(prefix + name) for name in weights.linears}
        self._weights = weights
        self._recipe = recipe
        self._prefix = prefix
        self._before = weights.named()
        self._linears: dict[str, QuantizedLinear] = {}

    def round(self, names: tuple[str, ...], hessian: Tensor | None) -> Iterator[str]:
        """Linear layers that read the same inputs, of this Hessian (None: no text was read); yields whole names."""
        factor, plain = None, None if hessian is None else hessian.float()
        for name in names:
            grid = self.grids[name]
            try:
                if grid is not None:
                    factor = factor or self._factor(hessian)
                    self._linears[name] = self._rounded(name, grid, factor, plain)
            except ConfigurationError as error:
                raise ConfigurationError(f"{self._prefix}{name}: {error}") from error
            yield self._prefix + name

    def _factor(self, hessian: Tensor | None) -> HessianFactor | None:
        """None where rounding needs none."""
        if self._recipe.rounding != "gptq":
            return None
        if hessian is None:
            raise ConfigurationError("GPTQ needs calibration text.")
        return factorize(hessian, damping=self._recipe.gptq.damping, by_activity=self._recipe.gptq.act_order)

    def _rounded(self, name: str, grid: Grid, factor: HessianFactor | None, hessian: Tensor | None) -> QuantizedLinear:
        weight = self._weights.linears[name]
        if factor is not None:
            codes = quantize_gptq(weight, factor, grid, static_groups=self._recipe.gptq.static_groups)
        else:
            codes = round_to_nearest(weight, grid, None if hessian is None else hessian.diagonal())
        found = codes.dequantize()
        self._weights.linears[name] = found
        lost = weight - found
        return QuantizedLinear(
            codes=codes,
            weight_error=_share(float(lost.norm()), float(weight.norm())),
            output_error=None
            if hessian is None
            else _share(output_error(lost, hessian) ** 0.5, output_error(weight, hessian) ** 0.5),
        )

    def finished(self, index: int) -> QuantizedLayer:
        changed = {
            name: tensor
            for name, tensor in self._weights.named().items()
            if tensor is not self._before[name] and name.removesuffix(".weight") not in self._linears
        }
        return QuantizedLayer(index=index, linears=self._linears, floats=changed)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
