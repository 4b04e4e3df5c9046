"""Short spellings of traces of lengths for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.reader import ImportedTrace, import_trace
from quantgate_engine.errors import ConfigurationError

BURSTGPT = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
BURSTGPT_3 = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"


def write_lines(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    return path


def block_row(time_ms: float, prompt: int, output: int, ids: list[int], **changes: Any) -> str:
    """A row as Mooncake writes it."""
    row = {"timestamp": time_ms, "input_length": prompt, "output_length": output, "hash_ids": ids}
    return json.dumps(row | changes)


def imported(trace: Path, **settings: Any) -> ImportedTrace:
    return import_trace(trace, ImportSettings(**settings))


def refusal(trace: Path, **settings: Any) -> str:
    """What is said of the file, without the folder that it lies in."""
    with pytest.raises(ConfigurationError) as refused:
        imported(trace, **settings)
    return str(refused.value).removeprefix(f"{trace.parent}/")
