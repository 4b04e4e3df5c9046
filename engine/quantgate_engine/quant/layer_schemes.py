"""Which scheme each linear layer of a model gets: one for all of them, or exceptions by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.precision import Precision
from quantgate_engine.quant.scheme import Scheme
from quantgate_engine.quant.scheme_text import SchemeChoice, parts_of, scheme_text
from quantgate_engine.quant.schemes import PREPARED_SCHEMES, find_scheme
from quantgate_kernels.kernel_set import KernelSet

HEAD = "lm_head"


@dataclass(frozen=True, slots=True)
class LayerSchemes:
    """exceptions: from patterns of layers' names (`*.down_proj`, `model.layers.0.*`, `lm_head`) to their schemes.

    The first pattern that fits counts, and `default` is for layers that none fits. The head is quantized only where a
    pattern other than `*` asks for it.
    """

    default: Scheme
    exceptions: tuple[tuple[str, Scheme], ...] = ()

    @property
    def name(self) -> str:
        """`int4-g64`, or `int4-g64+*.down_proj=int8-w8a16`, as `find_schemes` reads it."""
        return "+".join((self.default.name, *(f"{pattern}={scheme.name}" for pattern, scheme in self.exceptions)))

    def of(self, layer: str) -> Scheme:
        """layer: `model.layers.3.mlp.down_proj`."""
        return next((scheme for pattern, scheme in self.exceptions if fnmatchcase(layer, pattern)), self.default)

    def of_head(self) -> Scheme | None:
        """None where the head keeps the bits of the embedding."""
        named = (pair for pair in self.exceptions if pair[0] != "*" and fnmatchcase(HEAD, pair[0]))
        return next((scheme for _, scheme in named), None)

    def precision(self, device: torch.device, kernels: KernelSet) -> Precision:
        """Raises ConfigurationError where schemes disagree in the dtype of activations."""
        precision = self.default.precision(device, kernels)
        for pattern, scheme in self.exceptions:
            if scheme.precision(device, kernels) != precision:
                raise ConfigurationError(
                    f"A map of schemes gives {pattern} {scheme.name} and other layers {self.default.name}, which do "
                    "not compute in one dtype; take schemes that do (not fp32 or bf16 beside quantized ones)."
                )
        return precision

    def arithmetic(self, precision: Precision) -> str:
        """See `Scheme.arithmetic`; each of them once."""
        return "; ".join(dict.fromkeys(scheme.arithmetic(precision) for scheme in self._schemes()))

    def check(self, layers: Mapping[str, int]) -> None:
        """layers: name -> number of inputs, the head among them.

        Raises ConfigurationError where a scheme does not fit a layer, or a pattern no layer.
        """
        for pattern, _ in self.exceptions:
            if not any(fnmatchcase(layer, pattern) for layer in layers):
                raise ConfigurationError(
                    f"A map of schemes names {pattern!r}, which fits no layer of this model; layers are called "
                    f"{', '.join(_examples(layers))}."
                )
        head = self.of_head()
        inputs: dict[str, dict[str, int]] = {}
        schemes = {scheme.name: scheme for scheme in self._schemes()}
        for layer, count in layers.items():
            scheme = head if layer == HEAD else self.of(layer)
            if scheme is not None:
                # Layers of a kind have as many inputs: named once.
                inputs.setdefault(scheme.name, {})[layer.rpartition(".")[2]] = count
        for name, own in inputs.items():
            schemes[name].check_inputs(own)

    def _schemes(self) -> Iterable[Scheme]:
        return self.default, *(scheme for _, scheme in self.exceptions)


def find_schemes(choice: SchemeChoice) -> LayerSchemes:
    """Raises ConfigurationError, with what is known, for an unknown name or a map that cannot be."""
    default, exceptions = parts_of(scheme_text(choice))
    schemes = LayerSchemes(find_scheme(default), tuple((pattern, find_scheme(name)) for pattern, name in exceptions))
    for name in (default, *(name for _, name in exceptions)) if exceptions else ():
        if name in PREPARED_SCHEMES:
            raise ConfigurationError(
                f"Scheme {name} quantizes a whole model before it is loaded and has no place in a map of schemes; "
                "name it alone, or take schemes that quantize at load, such as int4-g64."
            )
    return schemes


def _examples(layers: Iterable[str]) -> list[str]:
    """The first of each kind."""
    kinds: dict[str, str] = {}
    for layer in layers:
        kinds.setdefault(layer.rpartition(".")[2], layer)
    return list(kinds.values())
