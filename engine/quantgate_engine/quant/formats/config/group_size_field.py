"""The field group_size as configurations state it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from quantgate_engine.quant.formats.input_groups import WHOLE_ROW


def _checked(value: int) -> int:
    if value < 1 and value != WHOLE_ROW:
        raise ValueError(f"expected a positive integer, or {WHOLE_ROW} for one group of all inputs, found {value}")
    return value


GroupSize = Annotated[int, AfterValidator(_checked)]
