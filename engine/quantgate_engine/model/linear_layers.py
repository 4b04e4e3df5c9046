"""Where the weights of linear layers come from: quantized here by a scheme, or as a checkpoint stores them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from quantgate_engine.errors import ConfigurationError, ModelError
from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.config import DecoderConfig
from quantgate_engine.model.stored_layers import StoredLayers
from quantgate_engine.model_info import REPRODUCES_AT_LOAD
from quantgate_engine.quant.dense import store_dense
from quantgate_engine.quant.grouped_codes import GroupedCodes
from quantgate_engine.quant.layer_schemes import HEAD, LayerSchemes
from quantgate_engine.quant.linear_weight import has_kernels, linear_weight
from quantgate_engine.quant.perturbation import WeightPerturbation
from quantgate_engine.quant.precision import Precision
from quantgate_engine.quant.scheme import Scheme
from quantgate_engine.quant.source_grid import SourceGrid
from quantgate_engine.quant.stored_scheme import STORED
from quantgate_kernels.types import LinearPart

EMBEDDING = "model.embed_tokens"


class LinearLayers(Protocol):
    """Takes each linear layer of a checkpoint as a weight for kernels."""

    def check(self, config: DecoderConfig) -> None:
        """Raises ConfigurationError where they do not fit the model."""
        ...

    def take(self, checkpoint: Checkpoint, layer: str, shape: tuple[int, int]) -> LinearPart:
        """layer: `model.layers.3.mlp.down_proj`; shape: [out, in].

        Raises ModelError where its tensors are missing or damaged.
        """
        ...

    def arithmetic(self) -> str:
        """Of activations; see `Scheme.arithmetic`. Of a checkpoint's own layers when they have been taken."""
        ...

    def provenance(self) -> dict[str, Any]:
        """What the folder does not tell of where the weights came from, when they have been taken; JSON values."""
        ...

    def head(self, checkpoint: Checkpoint, config: DecoderConfig) -> LinearPart | None:
        """None where it is the embedding: the model ties them, and nothing gives the head fewer bits."""
        ...


@dataclass(frozen=True, slots=True)
class LayersByScheme:
    """stored: of a checkpoint that is quantized already: what it stands for is quantized anew.

    source_grid: whether that, or quantizing floats that were codes once, changed anything.
    """

    schemes: LayerSchemes
    precision: Precision
    device: torch.device
    stored: StoredLayers | None = None
    perturbation: WeightPerturbation | None = None
    source_grid: SourceGrid = field(default_factory=SourceGrid)

    def check(self, config: DecoderConfig) -> None:
        self.schemes.check({**config.linear_layers(), HEAD: config.hidden_size})

    def take(self, checkpoint: Checkpoint, layer: str, shape: tuple[int, int]) -> LinearPart:
        weight = float_weight(checkpoint, self.stored, layer, shape)
        if self.perturbation is not None:
            weight = self.perturbation.apply(layer, weight)
        return self._quantized(weight.to(self.device), self.schemes.of(layer))

    def head(self, checkpoint: Checkpoint, config: DecoderConfig) -> LinearPart | None:
        scheme = self.schemes.of_head()
        if scheme is None and config.tied_head:
            return None
        layer = EMBEDDING if config.tied_head else HEAD
        weight = float_weight(checkpoint, self.stored, layer, config.head_shape).to(self.device)
        return store_dense(weight, self.precision) if scheme is None else self._quantized(weight, scheme)

    def _quantized(self, weight: Tensor, scheme: Scheme) -> LinearPart:
        self.source_grid.look(weight, scheme)
        return scheme.quantize(weight, self.precision)

    def arithmetic(self) -> str:
        return self.schemes.arithmetic(self.precision)

    def provenance(self) -> dict[str, Any]:
        told: dict[str, Any] = {} if self.stored is None else {"previous_quantization": self.stored.provenance()}
        if self.source_grid.reproduced is not None:
            told[REPRODUCES_AT_LOAD] = self.source_grid.reproduced
        return told


@dataclass(frozen=True, slots=True)
class LayersAsStored:
    """Layers that the checkpoint stores as floats are dense, and so are those of which no kernel knows the codes."""

    stored: StoredLayers
    precision: Precision
    device: torch.device

    def check(self, config: DecoderConfig) -> None:
        """What the configuration says fits any model; the tensors are looked at one by one."""

    def take(self, checkpoint: Checkpoint, layer: str, shape: tuple[int, int]) -> LinearPart:
        storage = self.stored.storage(layer)
        if storage is None:
            return store_dense(checkpoint.take(f"{layer}.weight", shape).to(self.device), self.precision)
        weight = self.stored.read(checkpoint, layer, storage, shape)
        if not (isinstance(weight, GroupedCodes) and has_kernels(weight)):
            return store_dense(weight.dequantize().to(self.device), self.precision)
        if storage.int8_activations and not (weight.is_symmetric and weight.scales.shape[1] == 1):
            raise ModelError(
                f"{checkpoint.folder}: {layer} ({storage.summary}) is to meet INT8 activations, which is computed for "
                "symmetric weights with one scale per output; use a model that is quantized so, or with weights alone."
            )
        return linear_weight(weight.to(self.device), self.precision, int8_activations=storage.int8_activations)

    def head(self, checkpoint: Checkpoint, config: DecoderConfig) -> LinearPart | None:
        return None if config.tied_head else self.take(checkpoint, HEAD, config.head_shape)

    def arithmetic(self) -> str:
        operands = "int8" if self.stored.int8_activations else None
        return replace(STORED, linear_operands=operands).arithmetic(self.precision)

    def provenance(self) -> dict[str, Any]:
        return {"stored_quantization": self.stored.provenance()}


def float_weight(checkpoint: Checkpoint, stored: StoredLayers | None, layer: str, shape: tuple[int, int]) -> Tensor:
    """float32 [out, in]: what the checkpoint's layer stands for, quantized or not."""
    storage = None if stored is None else stored.storage(layer)
    if stored is None or storage is None:
        return checkpoint.take(f"{layer}.weight", shape)
    return stored.read(checkpoint, layer, storage, shape).dequantize()


def linear_layers(
    schemes: LayerSchemes,
    precision: Precision,
    device: torch.device,
    stored: StoredLayers | None,
    perturbation: WeightPerturbation | None,
) -> LinearLayers:
    """Raises ConfigurationError where weights are to be as stored, and are stored as floats, or are to be perturbed."""
    name = schemes.default.name
    if not schemes.default.as_stored:
        return LayersByScheme(schemes, precision, device, stored, perturbation)
    if stored is None:
        raise ConfigurationError(
            f"Scheme {name} takes weights as the checkpoint quantized them, and this model's are not quantized; "
            "choose a scheme, such as fp16 or int4-g64."
        )
    if schemes.exceptions:
        raise ConfigurationError(f"Scheme {name} has no exceptions by name: each layer is as the checkpoint stores it.")
    if perturbation is not None:
        raise ConfigurationError(
            f"A weight perturbation changes weights before they are quantized, and scheme {name} takes them as "
            "they are; choose another scheme."
        )
    return LayersAsStored(stored, precision, device)
