"""What pydantic finds wrong with a checkpoint's own configuration, in words."""

from __future__ import annotations

from pydantic import ValidationError

from quantgate_engine.shown import LONGEST_SHOWN, on_one_line, shown

_OF_A_KEY = "[key]"
_PLAINER = {
    "missing": "it is missing",
    "dict_type": "expected an object",
    "model_type": "expected an object",
}


def first_fault(error: ValidationError) -> str:
    """Such as "field bits: expected 2, 3, 4 or 8, found 5"."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return "it is not JSON"
    field = on_one_line(".".join(str(part) for part in first["loc"] if part != _OF_A_KEY), LONGEST_SHOWN)
    words = _PLAINER.get(first["type"])
    if words is None:
        said = first["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
        words = said if first["type"] == "value_error" else f"{said}, found {shown(first['input'])}"
    return f"field {field}: {words}" if field else words
