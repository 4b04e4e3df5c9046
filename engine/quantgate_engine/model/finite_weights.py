"""The sentence with which weights are refused that no model can compute with."""

from __future__ import annotations

from pathlib import Path

from quantgate_engine.errors import ModelError


def not_finite(path: Path, name: str, count: int, total: int) -> ModelError:
    return ModelError(
        f"{path}: {count} of the {total} values of tensor {name} are NaN or infinite, so that no answer would mean "
        "anything; fetch or export the model again."
    )
