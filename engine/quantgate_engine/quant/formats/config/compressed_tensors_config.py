"""What a compressed-tensors checkpoint says of itself: groups of layers by target, each with its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from quantgate_engine.quant.formats.compressed_tensors import IntStorage, PackedStorage
from quantgate_engine.quant.formats.config.group_size_field import GroupSize
from quantgate_engine.quant.formats.config.module_names import checked_pattern
from quantgate_engine.quant.formats.input_groups import WHOLE_ROW
from quantgate_engine.shown import shown

_REGULAR = "re:"
_LINEAR = "Linear"
"""The class of every layer that is asked for."""


def _checked_target(target: str) -> str:
    if target.startswith(_REGULAR):
        checked_pattern(target.removeprefix(_REGULAR))
    return target


Target = Annotated[str, AfterValidator(_checked_target)]
LayerFormat = Literal["pack-quantized", "int-quantized", "naive-quantized"]
_STORAGES: dict[LayerFormat, type[PackedStorage] | type[IntStorage]] = {
    "pack-quantized": PackedStorage,
    "int-quantized": IntStorage,
    "naive-quantized": IntStorage,
}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class WeightArguments(_Part):
    """actorder: the order in which inputs were quantized; with `group` (or true) it is that of the groups too."""

    num_bits: int = Field(default=8, ge=2, le=8)
    type: Literal["int"] = "int"
    symmetric: bool = True
    strategy: Literal["tensor", "channel", "group", None] = None
    group_size: GroupSize | None = None
    actorder: Literal["weight", "static", "group", "dynamic", False, True, None] = None
    dynamic: Literal[False] = False

    @model_validator(mode="after")
    def _groups_have_a_size(self) -> Self:
        if self.strategy == "group" and self.group_size in (None, WHOLE_ROW):
            raise ValueError("expected a positive group_size beside the strategy group")
        return self

    @property
    def group_inputs(self) -> int:
        grouped = self.group_size is not None and self.strategy in ("group", None)
        return self.group_size if grouped and self.group_size is not None else WHOLE_ROW

    @property
    def lists_groups(self) -> bool:
        return self.actorder in ("group", "dynamic", True)

    @property
    def one_scale(self) -> bool:
        return self.strategy == "tensor" or (self.strategy is None and self.group_size is None)


class ActivationArguments(_Part):
    """The one rounding of activations that the engine does: INT8, one scale per token, found as it runs."""

    num_bits: Literal[8]
    type: Literal["int"] = "int"
    symmetric: Literal[True] = True
    strategy: Literal["token"]
    dynamic: Literal[True]


class LayerGroup(_Part):
    targets: list[Target]
    weights: WeightArguments
    input_activations: ActivationArguments | None = None
    output_activations: None = None
    format: LayerFormat | None = None


def _no_transforms(stated: dict[str, Any] | None) -> dict[str, Any] | None:
    """Weights were rotated, and the product is right only where activations are too."""
    if stated:
        raise ValueError(f"expected nothing, found {shown(stated)}, by which activations would have to be transformed")
    return stated


class CompressedTensorsConfig(_Part):
    format_name: ClassVar[str] = "compressed-tensors"

    config_groups: dict[str, LayerGroup] = Field(min_length=1)
    format: Literal["pack-quantized", "int-quantized", "naive-quantized", "mixed-precision"]
    ignore: list[Target] | None = None
    kv_cache_scheme: None = None
    quantization_status: Literal["compressed"] = "compressed"
    transform_config: Annotated[dict[str, Any] | None, AfterValidator(_no_transforms)] = None

    @model_validator(mode="after")
    def _every_group_has_a_format(self) -> Self:
        for name, group in self.config_groups.items():
            if self.format == "mixed-precision" and group.format is None:
                raise ValueError(f"expected a format in config_groups.{name}, as the whole is mixed-precision")
        return self

    def storage(self, layer: str) -> PackedStorage | IntStorage | None:
        if _first_match(self.ignore or (), layer) is not None:
            return None
        group_of_target = {target: group for group in self.config_groups.values() for target in group.targets}
        target = _first_match(group_of_target, layer)
        return None if target is None else self._storage(group_of_target[target])

    def _storage(self, group: LayerGroup) -> PackedStorage | IntStorage:
        stated = group.format or self.format
        assert stated != "mixed-precision", "_every_group_has_a_format"
        return _STORAGES[stated](
            bits=group.weights.num_bits,
            group_size=group.weights.group_inputs,
            symmetric=group.weights.symmetric,
            one_scale=group.weights.one_scale,
            lists_groups=group.weights.lists_groups,
            int8_activations=group.input_activations is not None,
        )


def _first_match(targets: Iterable[str], layer: str) -> str | None:
    """The most specific target: the layer's name before regular expressions, these by alphabet, the class last."""
    ordered = sorted(targets, key=lambda target: (target == _LINEAR, target.startswith(_REGULAR), target))
    return next((target for target in ordered if _matches(target, layer)), None)


def _matches(target: str, layer: str) -> bool:
    if target.startswith(_REGULAR):
        return re.match(target.removeprefix(_REGULAR), layer) is not None
    return target in (layer, _LINEAR)
