"""One layer as a walk leaves it: what a checkpoint stores of it, and what tells how well it went."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from quantgate_engine.quant.calibration.layer_weights import LayerWeights
from quantgate_engine.quant.grouped_codes import GroupedCodes


@dataclass(frozen=True, slots=True)
class QuantizedLinear:
    """weight_error: |W - Q| / |W| of the weight that was rounded, after folding; 0 where its grid is that of the codes.

    output_error: |(W - Q) X| / |W X| over the calibration rows; None where no text was read.
    """

    codes: GroupedCodes
    weight_error: float
    output_error: float | None


@dataclass(frozen=True, slots=True)
class QuantizedLayer:
    """linears: by name behind `model.layers.N.`, without `.weight`. floats: what folding changed of the rest, float32,
    by name behind `model.layers.N.`, as `input_layernorm.weight` or `mlp.up_proj.bias`; all else stays as it was."""

    index: int
    linears: dict[str, QuantizedLinear]
    floats: dict[str, Tensor]

    def put_into(self, weights: LayerWeights) -> None:
        """Replaces the layer's float weights by what the codes stand for."""
        named = ((weights.linears, "weight"), (weights.norms, "weight"), (weights.biases, "bias"))
        for tensors, kind in named:
            for name in tensors:
                if f"{name}.{kind}" in self.floats:
                    tensors[name] = self.floats[f"{name}.{kind}"]
        for name, linear in self.linears.items():
            weights.linears[name] = linear.codes.dequantize()
