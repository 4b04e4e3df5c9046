"""Which layers a GPTQ or AWQ checkpoint quantizes, and by which settings, in gptqmodel's and transformers' fields."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from quantgate_engine.quant.formats.config.group_size_field import GroupSize
from quantgate_engine.quant.formats.config.module_names import any_names, checked_entry, checked_pattern

GptqBits = Literal[2, 3, 4, 8]

_HEAD = "lm_head"
_EXCLUDED = "-:"
_INCLUDED = "+:"


class Overrides(BaseModel):
    """What gptqmodel's `dynamic` sets for the layers of one pattern; None where the settings of all layers hold."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    bits: GptqBits | None = None
    group_size: GroupSize | None = None
    sym: bool | None = None
    desc_act: bool | None = None


def _flat(entries: object) -> object:
    """optimum groups the modules of a block by the order in which it quantizes them."""
    if not isinstance(entries, list):
        return entries
    return [name for entry in entries for name in (entry if isinstance(entry, list) else [entry])]


def _checked_key(key: str) -> str:
    checked_pattern(_unsigned(key))
    return key


def _unsigned(key: str) -> str:
    return key.removeprefix(_EXCLUDED).removeprefix(_INCLUDED)


Pattern = Annotated[str, AfterValidator(_checked_key)]
Entry = Annotated[str, AfterValidator(checked_entry)]


class Selection(BaseModel):
    """Where nothing else is said, all linear layers of the blocks are quantized, and the head is not."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    lm_head: bool = False
    dynamic: dict[Pattern, Overrides] | None = None
    modules_in_block_to_quantize: Annotated[list[Entry], BeforeValidator(_flat)] | None = None
    modules_to_not_convert: list[Entry] | None = None

    def overrides_for(self, layer: str) -> Overrides | None:
        """None: the layer is not quantized."""
        if layer == _HEAD and not self.lm_head:
            return None
        if any_names(self.modules_to_not_convert or (), layer):
            return None
        chosen = self.modules_in_block_to_quantize
        if chosen is not None and layer != _HEAD and not any_names(chosen, layer):
            return None
        for pattern, overrides in (self.dynamic or {}).items():
            if re.match(_unsigned(pattern), layer):
                return None if pattern.startswith(_EXCLUDED) else overrides
        return Overrides()
