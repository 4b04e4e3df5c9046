"""Reads `verdict.json` back from a run's folder."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from quantgate.gate.verdict_model import VERDICT_SCHEMA, Verdict
from quantgate.json_text import parse_json
from quantgate.problem import first_problem
from quantgate_engine.errors import RunError

VERDICT_FILE = "verdict.json"


def read_verdict(folder: Path) -> Verdict | None:
    """The run's verdict; None where it was never judged. Raises RunError for a damaged or unknown file."""
    path = folder / VERDICT_FILE
    if not path.is_file():
        return None
    try:
        document = parse_json(path.read_bytes())
    except (ValueError, OSError) as error:
        raise RunError(
            f"{path} cannot be read as JSON ({error}); judge the run again: quantgate gate {folder}."
        ) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != VERDICT_SCHEMA:
        raise RunError(
            f"{path}, field schema: expected {VERDICT_SCHEMA!r}, got {schema!r}; judge the run again: "
            f"quantgate gate {folder}."
        )
    try:
        return Verdict.model_validate(document)
    except ValidationError as error:
        raise RunError(first_problem(error, document, Verdict).sentence(str(path))) from error
