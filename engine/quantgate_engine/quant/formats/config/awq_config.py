"""What an AWQ checkpoint says of itself: in config.json, or in AutoAWQ's older quant_config.json."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, AliasChoices, Field, field_validator

from quantgate_engine.quant.formats.awq import BITS, AwqStorage
from quantgate_engine.quant.formats.config.gptqmodel_selection import Overrides, Selection
from quantgate_engine.quant.formats.config.group_size_field import GroupSize
from quantgate_engine.shown import shown_name


def _gemm(version: str) -> str:
    if version.lower() != "gemm":
        raise ValueError(f"expected gemm, found {version!r}, whose order of outputs is another one")
    return version


def _ordered_as_autoawq(backend: str) -> str:
    """Other backends name kernels, which all take AutoAWQ's order."""
    if backend == "llm-awq":
        raise ValueError("expected autoawq, found 'llm-awq', whose order of outputs is another one")
    return backend


class AwqConfig(Selection):
    format_name: ClassVar[str] = "awq"

    bits: Literal[4] = Field(validation_alias=AliasChoices("bits", "w_bit"))
    group_size: GroupSize = Field(default=128, validation_alias=AliasChoices("group_size", "q_group_size"))
    version: Annotated[str, AfterValidator(_gemm)] = Field(
        default="gemm", validation_alias=AliasChoices("version", "format", "checkpoint_format")
    )
    backend: Annotated[str, AfterValidator(_ordered_as_autoawq)] | None = None

    @field_validator("dynamic")
    @classmethod
    def _four_bits(cls, dynamic: dict[str, Overrides] | None) -> dict[str, Overrides] | None:
        for pattern, overrides in (dynamic or {}).items():
            if overrides.bits not in (None, BITS):
                raise ValueError(f"expected {BITS} bits for {shown_name(pattern)}, found {overrides.bits}")
        return dynamic

    def storage(self, layer: str) -> AwqStorage | None:
        overrides = self.overrides_for(layer)
        if overrides is None:
            return None
        return AwqStorage(group_size=self.group_size if overrides.group_size is None else overrides.group_size)
