"""What a value of JSON is, without showing it: in a trace it may be what somebody wrote."""

from __future__ import annotations

from typing import Any


def kind_of(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
