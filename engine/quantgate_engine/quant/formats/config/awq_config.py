"""What an AWQ checkpoint says of itself: in config.json, or in AutoAWQ's older quant_config.json."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, AliasChoices, Field

from quantgate_engine.quant.formats.awq import AwqStorage
from quantgate_engine.quant.formats.config.gptqmodel_selection import Selection
from quantgate_engine.quant.formats.config.group_size_field import GroupSize


def _gemm(version: str) -> str:
    if version.lower() != "gemm":
        raise ValueError(f"expected gemm, found {version!r}, whose order of outputs is another one")
    return version


class AwqConfig(Selection):
    format_name: ClassVar[str] = "awq"

    bits: Literal[4] = Field(validation_alias=AliasChoices("bits", "w_bit"))
    group_size: GroupSize = Field(default=128, validation_alias=AliasChoices("group_size", "q_group_size"))
    version: Annotated[str, AfterValidator(_gemm)] = Field(
        default="gemm", validation_alias=AliasChoices("version", "format", "checkpoint_format")
    )
    backend: Literal["autoawq", "gptqmodel", "auto", None] = None

    def storage(self, layer: str) -> AwqStorage | None:
        overrides = self.overrides_for(layer)
        if overrides is None:
            return None
        return AwqStorage(group_size=self.group_size if overrides.group_size is None else overrides.group_size)
