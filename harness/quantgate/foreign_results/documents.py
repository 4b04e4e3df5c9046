"""The JSON documents of a file: one document, or one a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quantgate_engine.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON object. place: the file, with the line where the file holds one object a line."""

    content: dict[str, Any]
    place: str


def read_documents(path: Path) -> list[Document]:
    """The objects of a JSON or JSON Lines file, at least one; NaN and Infinity are kept for the format to judge.

    Raises ConfigurationError for what cannot be read, is no JSON, or is no object, with the line.
    """
    text = _text(path)
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise ConfigurationError(f"{path}: the file is empty; expected the JSON results of a load test.")
    if len(lines) > 1 and _stands_alone(lines[0][1]):
        return [_document(line, f"{path}, line {number}", number) for number, line in lines]
    return [_document(text, str(path), 1)]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: there is no such file or run folder; check the path.") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: byte {error.start} is not UTF-8; expected a JSON file of results.") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror}); expected a file of results.") from None


def _stands_alone(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _document(text: str, place: str, first_line: int) -> Document:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        file = place.partition(", line ")[0]
        line = first_line + error.lineno - 1
        raise ConfigurationError(
            f"{file}, line {line}, column {error.colno}: not valid JSON ({error.msg}); the file is damaged or holds "
            "no results, export it again."
        ) from None
    except RecursionError:
        raise ConfigurationError(f"{place}: nested too deeply; expected the results of a load test.") from None
    if not isinstance(content, dict):
        raise ConfigurationError(f"{place}: expected a JSON object with results, got {_kind(content)}.")
    return Document(content, place)


def _kind(value: object) -> str:
    return {list: "a list", str: "text", bool: "a truth value", type(None): "null"}.get(type(value), "a number")
