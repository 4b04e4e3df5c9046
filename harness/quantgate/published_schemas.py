"""JSON schemas of the files that users write: the YAML files, and a line of a trace; for checks in editors.

`python -m quantgate.published_schemas suites/schemas` writes them again; a test holds files and models together.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from quantgate.gate.policy import Policy
from quantgate.quality.task_files import TaskFile
from quantgate.suite import Suite
from quantgate.traces.native_row import NativeRow
from quantgate.traces.openai_log.columns import ColumnMap

MODELS: dict[str, type[BaseModel]] = {
    "suite": Suite,
    "policy": Policy,
    "task": TaskFile,
    "columns": ColumnMap,
    "trace": NativeRow,
}


def published_schemas() -> dict[str, dict[str, Any]]:
    """File name -> JSON schema (draft 2020-12)."""
    return {
        f"{name}.schema.json": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **model.model_json_schema(by_alias=True),
        }
        for name, model in MODELS.items()
    }


def as_text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file_name, schema in published_schemas().items():
        (folder / file_name).write_text(as_text(schema), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
