"""Passages of every text that travels with quantgate to judge models by, so that calibration can be kept apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from quantgate.resources import bundled_root
from quantgate_engine.quant.calibration.passages import passage_hashes

_FOLDERS = ("suites/tasks", "replay_samples")


@cache
def evaluation_passages() -> frozenset[str]:
    """Of the bundled tasks, traffic and texts: see `passage_hashes`."""
    root = bundled_root()
    files = (path for folder in _FOLDERS for path in sorted((root / folder).rglob("*")) if path.is_file())
    return frozenset().union(*(passage_hashes(text) for path in files for text in _texts(path)))


def _texts(path: Path) -> Iterator[str]:
    """What of the file a model may be given: words as they are, not as a format escapes them."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".yaml":
        yield from _strings(yaml.safe_load(content))
    elif path.suffix == ".jsonl":
        for line in content.splitlines():
            yield from _strings(json.loads(line))
    else:
        yield content


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
