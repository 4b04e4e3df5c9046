"""How much calibration text, and what was drawn."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from quantgate_engine.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class CalibrationSettings:
    """sequences of so many tokens each; seed: which parts of the text are drawn."""

    sequences: int = 64
    tokens: int = 512
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("sequences", "tokens"):
            value = getattr(self, name)
            if value < 1:
                raise ConfigurationError(f"CalibrationSettings.{name} is {value}; expected 1 or more.")


@dataclass(frozen=True, slots=True)
class CalibrationTokens:
    """token_ids: int64 [sequences, tokens]; sha256: of them, for provenance."""

    token_ids: Tensor
    sha256: str
