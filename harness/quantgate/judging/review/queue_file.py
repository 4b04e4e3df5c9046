"""The review queue as a file: YAML for people, JSONL for programs; both hold the same items."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quantgate.json_text import parse_json
from quantgate.problem import first_problem
from quantgate.validation import load_yaml_model
from quantgate_engine.errors import ConfigurationError

QUEUE_SCHEMA: Literal["quantgate.review/1"] = "quantgate.review/1"
_HOW_TO = """\
# Which answer serves the person who asked better? Fill in `better` of each item: 1, 2 or tie; leave it empty where you
# cannot say. `note` is yours. Change nothing else. Then: quantgate review import RUN THIS_FILE
"""


Model = TypeVar("Model", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)


class QueueItem(_Strict):
    """Two answers without names. `better` and `note` are for the reviewer."""

    id: str
    request: str
    answer_1: str
    answer_2: str
    better: Literal[1, 2, "1", "2", "tie"] | None = None
    note: str | None = None

    @property
    def choice(self) -> str | None:
        return None if self.better is None else str(self.better)


class QueueHead(_Strict):
    schema_: Literal["quantgate.review/1"] = Field(QUEUE_SCHEMA, alias="schema")
    run_id: str


class ReviewQueue(QueueHead):
    items: list[QueueItem]


@dataclass(frozen=True, slots=True)
class FiledItem:
    """An item and where it stands, such as `queue.yaml, line 12`, for the words of an error."""

    item: QueueItem
    place: str


def queue_text(path: Path, queue: ReviewQueue) -> str:
    """The file's text, in the format that its name asks for. Raises ConfigurationError for another one."""
    return _format(path).written(queue)


def read_queue(path: Path) -> tuple[str, list[FiledItem]]:
    """The run's id and the items. Raises ConfigurationError with file, line and field."""
    return _format(path).read(path)


_LINE_BREAKS_OF_YAML = frozenset("\x85\u2028\u2029")
"""Read back as line feeds or spaces, except where quotes escape them."""


class _BlockDumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, so that a person can read them."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _LINE_BREAKS_OF_YAML & set(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_BlockDumper.add_representer(str, _text)


def _as_yaml(queue: ReviewQueue) -> str:
    document = queue.model_dump(mode="json", by_alias=True)
    return _HOW_TO + yaml.dump(document, Dumper=_BlockDumper, allow_unicode=True, sort_keys=False, width=120)


def _from_yaml(path: Path) -> tuple[str, list[FiledItem]]:
    queue = load_yaml_model(path, ReviewQueue)
    root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    keys = root.value if root else []
    nodes = next(value.value for key, value in keys if key.value == "items")
    places = [f"{path}, line {node.start_mark.line + 1}" for node in nodes]
    return queue.run_id, [FiledItem(item, place) for item, place in zip(queue.items, places, strict=True)]


def _as_jsonl(queue: ReviewQueue) -> str:
    rows = [queue.model_dump(mode="json", by_alias=True, exclude={"items"})]
    rows += [item.model_dump(mode="json") for item in queue.items]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _from_jsonl(path: Path) -> tuple[str, list[FiledItem]]:
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror}); check the path.") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8.") from None
    rows = [(f"{path}, line {number}", line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not rows:
        raise ConfigurationError(f"{path}: the file is empty; expected a review queue.")
    head = _parsed(*rows[0], QueueHead)
    return head.run_id, [FiledItem(_parsed(place, line, QueueItem), place) for place, line in rows[1:]]


def _parsed(place: str, line: str, model: type[Model]) -> Model:
    try:
        document = parse_json(line)
    except ValueError as error:
        raise ConfigurationError(f"{place}: not valid JSON: {error}.") from None
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise ConfigurationError(first_problem(error, document, model).sentence(place)) from None


@dataclass(frozen=True, slots=True)
class _QueueFormat:
    written: Callable[[ReviewQueue], str]
    read: Callable[[Path], tuple[str, list[FiledItem]]]


_FORMATS = {
    ".yaml": _QueueFormat(_as_yaml, _from_yaml),
    ".yml": _QueueFormat(_as_yaml, _from_yaml),
    ".jsonl": _QueueFormat(_as_jsonl, _from_jsonl),
}


def _format(path: Path) -> _QueueFormat:
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise ConfigurationError(f"{path}: a review queue is a .yaml or .jsonl file; name one that ends so.")
    return found
