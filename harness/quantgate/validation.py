"""Reads the user's YAML files into models; whatever is wrong becomes one sentence with file, line and field."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.reader import ReaderError

from quantgate.locations import Location, field_name
from quantgate.problem import Problem, first_problem, known_keys
from quantgate.yaml_hints import hint_for_scalar, taken_for
from quantgate.yaml_nodes import require_plain_nodes
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import on_one_line, shown

Model = TypeVar("Model", bound=BaseModel)

_LONGEST_PROBLEM = 200
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What PyYAML's constructors let through for a value that its tag does not fit, such as `!!bool 3`."""

__all__ = ["Problem", "first_problem", "load_yaml_model", "parse_yaml_model"]


def load_yaml_model(path: Path, model: type[Model]) -> Model:
    """Read one YAML file and validate it.

    Raises ConfigurationError: "suites/x.yaml, line 12, field gain.any.0.metric: expected text, got 3."
    """
    if path.exists() and not path.is_file():
        raise ConfigurationError(f"{path}: cannot be read (it is no regular file); expected a YAML file.")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: there is no such file; check the path.") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path}: byte {error.start} is not UTF-8; expected a text file, save it as UTF-8."
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror}); expected a readable file.") from None
    return parse_yaml_model(text, model, name=str(path))


def parse_yaml_model(text: str, model: type[Model], *, name: str) -> Model:
    """Like `load_yaml_model`, from text; `name` stands for the file in errors."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None:
            raise ConfigurationError(
                f"{name}: the file is empty; expected a mapping of keys to values (known keys: "
                f"{', '.join(known_keys(model, ()))})."
            )
        require_plain_nodes(root, name)
        data = _Constructor().construct_document(root)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        reason = on_one_line(str(error.problem), _LONGEST_PROBLEM)
        raise ConfigurationError(f"{name}{line}: not valid YAML: {reason}.") from None
    except ReaderError as error:
        line_number = text.count("\n", 0, error.position) + 1
        raise ConfigurationError(
            f"{name}, line {line_number}: the character U+{ord(text[error.position]):04X} may not stand in YAML; "
            "remove it."
        ) from None
    except RecursionError:
        raise ConfigurationError(f"{name}: nested too deeply; expected a plain document.") from None
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = first_problem(error, data, model)
        node, line_number = _at(root, problem.location, names_key=problem.names_key)
        hint = hint_for_scalar(node, problem.expected) if isinstance(node, yaml.ScalarNode) else ""
        problem = replace(problem, message=problem.message + hint)
        raise ConfigurationError(problem.sentence(f"{name}, line {line_number}")) from None


def place_in(path: Path, location: Location) -> str:
    """`suites/x.yaml, line 12, field gain.any`: where a file that was read states a key that its reader refuses."""
    root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    assert root is not None, "an empty file states no key"
    return f"{path}, line {_at(root, location, names_key=True)[1]}, field {field_name(location)}"


class _Constructor(SafeConstructor):
    """Tells the line of a value that looks like a date or a number and is none, such as 2027-02-30."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except _UNREADABLE:
            value = shown(node.value) if isinstance(node, yaml.ScalarNode) else "this value"
            raise ConstructorError(
                problem=f"{value} cannot be read as {taken_for(node)}; correct it, or quote it where it is text",
                problem_mark=node.start_mark,
            ) from None


def _at(root: yaml.Node, location: Location, *, names_key: bool) -> tuple[yaml.Node, int]:
    """The value at `location` and its line (from 1), or that of its key; of its parent where it does not exist."""
    node = root
    line = root.start_mark.line
    for position, part in enumerate(location):
        last = position == len(location) - 1
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if pair is None:
                break
            key, node = pair
            line = key.start_mark.line if last and names_key else node.start_mark.line
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line
    return node, int(line) + 1
