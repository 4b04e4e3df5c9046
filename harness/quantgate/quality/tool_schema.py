"""Types and equality of tool arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from pydantic import StrictBool, StrictFloat, StrictInt, StrictStr

ArgumentType = Literal["string", "integer", "number", "boolean"]
ArgumentValue = StrictBool | StrictInt | StrictFloat | StrictStr

# Python counts true as an integer; JSON does not.
_FITS: dict[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
}

# What BFCL's AST checker leaves out of strings before it compares them (Gorilla project, ast_checker.py).
_IGNORED = re.compile(r"[ ,./\-_*^]")


def fits_type(value: object, kind: ArgumentType) -> bool:
    return _FITS[kind](value)


def same_value(given: Any, accepted: Any) -> bool:
    """Equal values; strings are equal without regard to case, spaces and the signs `,./-_*^`."""
    if isinstance(given, str) and isinstance(accepted, str):
        return _IGNORED.sub("", given).casefold() == _IGNORED.sub("", accepted).casefold()
    # 1 and 1.0 are one number in JSON; true and 1 are not one value.
    return isinstance(given, bool) == isinstance(accepted, bool) and bool(given == accepted)
