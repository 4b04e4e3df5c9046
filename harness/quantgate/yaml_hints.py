"""What to write where YAML 1.1 takes a plain value for something else than its author meant."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

from quantgate_engine.shown import cut, shown

TEXT = "tag:yaml.org,2002:str"
MERGE = "tag:yaml.org,2002:merge"
VALUE = "tag:yaml.org,2002:value"
"""Tags of plain values that stay text as keys; `<<` and `=` have tags of their own."""

_TAKEN_FOR = {
    "tag:yaml.org,2002:timestamp": "a date",
    "tag:yaml.org,2002:int": "a number",
    "tag:yaml.org,2002:float": "a number",
    "tag:yaml.org,2002:bool": "true or false",
    "tag:yaml.org,2002:null": "nothing (null)",
}
_EXPONENT = re.compile(r"(?P<whole>[-+]?[0-9]+)(?P<fraction>\.[0-9]*)?[eE](?P<sign>[-+]?)(?P<power>[0-9]{1,3})")


def taken_for(node: yaml.Node) -> str:
    """What YAML takes a value for, in words."""
    return _TAKEN_FOR.get(node.tag, f"a value of the kind {shown(node.tag.rsplit(':', 1)[-1])}")


def hint_for_scalar(node: yaml.ScalarNode, expected: Sequence[str]) -> str:
    """The end of a sentence that says what was expected and what was got; empty where nothing was misread."""
    if node.style is not None:
        return ""
    if tuple(expected) == ("text",) and node.tag in _TAKEN_FOR and node.value:
        return f", because YAML takes {cut(node.value)} for {taken_for(node)}; put it in quotes"
    power = _EXPONENT.fullmatch(node.value)
    if node.tag != TEXT or power is None:
        return ""
    if "an integer" in expected:
        return ", because YAML takes it for text; write all its digits"
    if "a number" not in expected:
        return ""
    number = f"{power['whole']}{power['fraction'] or '.0'}e{power['sign'] or '+'}{power['power']}"
    return f", because YAML takes it for text; write {number}"
