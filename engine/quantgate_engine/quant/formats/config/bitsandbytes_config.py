"""What a bitsandbytes checkpoint says of itself. Only its 4-bit layout is read."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from quantgate_engine.quant.formats.bnb4 import Bnb4Storage
from quantgate_engine.quant.formats.config.module_names import any_names, checked_entry

_SKIPPED_BY_DEFAULT = ("lm_head",)


class BitsandbytesConfig(BaseModel):
    """Kind of codes, blocks and nesting are not asked for: each layer's tensors say them."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    format_name: ClassVar[str] = "bitsandbytes"

    load_in_4bit: Literal[True]
    llm_int8_skip_modules: list[Annotated[str, AfterValidator(checked_entry)]] | None = None

    def storage(self, layer: str) -> Bnb4Storage | None:
        skipped = _SKIPPED_BY_DEFAULT if self.llm_int8_skip_modules is None else self.llm_int8_skip_modules
        return None if any_names(skipped, layer) else Bnb4Storage()
