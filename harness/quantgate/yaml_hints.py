"""What to write where YAML 1.1 takes a plain value for something else than its author meant."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

_TEXT = "tag:yaml.org,2002:str"
_TAKEN_FOR = {
    "tag:yaml.org,2002:timestamp": "a date",
    "tag:yaml.org,2002:int": "a number",
    "tag:yaml.org,2002:float": "a number",
    "tag:yaml.org,2002:bool": "true or false",
}
_EXPONENT = re.compile(r"(?P<whole>[-+]?[0-9]+)(?P<fraction>\.[0-9]*)?[eE](?P<sign>[-+]?)(?P<power>[0-9]{1,3})")


def hint_for_scalar(node: yaml.ScalarNode, expected: Sequence[str]) -> str:
    """The end of a sentence that says what was expected and what was got; empty where nothing was misread."""
    if node.style is not None:
        return ""
    if tuple(expected) == ("text",) and node.tag in _TAKEN_FOR:
        return f", because YAML takes {node.value} for {_TAKEN_FOR[node.tag]}; put it in quotes"
    power = _EXPONENT.fullmatch(node.value)
    if node.tag != _TEXT or power is None:
        return ""
    if "an integer" in expected:
        return ", because YAML takes it for text; write all its digits"
    if "a number" not in expected:
        return ""
    number = f"{power['whole']}{power['fraction'] or '.0'}e{power['sign'] or '+'}{power['power']}"
    return f", because YAML takes it for text; write {number}"
