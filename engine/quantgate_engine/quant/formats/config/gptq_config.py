"""What a GPTQ checkpoint says of itself: auto-gptq's quantize_config.json, and gptqmodel's and transformers' fields."""

from __future__ import annotations

from typing import ClassVar, Literal

from quantgate_engine.quant.formats.config.gptqmodel_selection import GptqBits, Selection
from quantgate_engine.quant.formats.config.group_size_field import GroupSize
from quantgate_engine.quant.formats.gptq import GptqStorage
from quantgate_engine.quant.formats.gptq_zeros import ZeroConvention


class GptqConfig(Selection):
    """static_groups: groups were formed before inputs were put into the order of `desc_act`, and stand in their own."""

    format_name: ClassVar[str] = "gptq"

    bits: GptqBits
    group_size: GroupSize = 128
    sym: bool | None = None
    desc_act: bool | None = None
    static_groups: bool | None = None
    checkpoint_format: ZeroConvention | None = None
    format: ZeroConvention | None = None
    is_marlin_format: Literal[False] | None = None
    pack_dtype: Literal["int32"] | None = None

    def storage(self, layer: str) -> GptqStorage | None:
        overrides = self.overrides_for(layer)
        if overrides is None:
            return None
        desc_act = self.desc_act if overrides.desc_act is None else overrides.desc_act
        return GptqStorage(
            bits=self.bits if overrides.bits is None else overrides.bits,
            group_size=self.group_size if overrides.group_size is None else overrides.group_size,
            convention=self.checkpoint_format or self.format or ZeroConvention.MINUS_ONE,
            symmetric=self.sym if overrides.sym is None else overrides.sym,
            lists_groups=bool(desc_act) and not self.static_groups,
        )
