"""What YAML allows and a settings file must not have; checked before anything is made of its values."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from quantgate.locations import Location, field_name
from quantgate.yaml_hints import MERGE, TEXT, VALUE, taken_for
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown, shown_name


def require_plain_nodes(root: yaml.Node, name: str) -> None:
    """Raises ConfigurationError with file (`name`), line and field.

    For a key that is no text or that stands twice in one mapping (YAML readers keep the last in silence; a margin
    written twice must not vanish), half of a character, and a value that holds itself.
    """
    _Walk(name).visit(root, ())


class _Walk:
    def __init__(self, name: str) -> None:
        self._name = name
        self._seen: set[int] = set()
        self._around: set[int] = set()

    def visit(self, node: yaml.Node, location: Location) -> None:
        if id(node) in self._around:
            raise self._refusal(node, location, "this value holds itself; write out what it is to be")
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        self._around.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            self._require_whole_characters(node, location)
        else:
            for child, part in self._children(node, location):
                self.visit(child, (*location, part))
        self._around.discard(id(node))

    def _children(self, node: yaml.Node, location: Location) -> Iterable[tuple[yaml.Node, int | str]]:
        if isinstance(node, yaml.SequenceNode):
            return [(child, position) for position, child in enumerate(node.value)]
        keys: set[str] = set()
        for key, _ in node.value:
            self._require_text(key, location)
            self._require_whole_characters(key, location)
            if key.value in keys:
                raise self._refusal(
                    key, (*location, key.value), "this key stands twice in one mapping; keep one of them"
                )
            keys.add(key.value)
        return [(value, key.value) for key, value in node.value]

    def _require_text(self, key: yaml.Node, location: Location) -> None:
        if not isinstance(key, yaml.ScalarNode):
            raise self._refusal(key, location, "expected keys that are text, got a list or a mapping as a key")
        if key.tag not in (TEXT, MERGE, VALUE):
            raise self._refusal(
                key,
                (*location, key.value),
                f"expected a key that is text, but YAML takes {shown_name(key.value)} for {taken_for(key)}; put it in "
                "quotes",
            )

    def _require_whole_characters(self, node: yaml.ScalarNode, location: Location) -> None:
        half = next((each for each in node.value if "\ud800" <= each <= "\udfff"), None)
        if half is not None:
            raise self._refusal(
                node,
                location,
                f"expected whole characters, got half of one, {shown(half)}; write the character",
            )

    def _refusal(self, node: yaml.Node, location: Location, message: str) -> ConfigurationError:
        field = f", field {field_name(location)}" if location else ""
        return ConfigurationError(f"{self._name}, line {node.start_mark.line + 1}{field}: {message}.")
