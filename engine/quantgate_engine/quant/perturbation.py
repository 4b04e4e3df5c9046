"""A planted regression: seeded noise on every linear weight, to prove that the gate can say no."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class WeightPerturbation:
    """Adds Gaussian noise of `relative_sigma` x the weight's standard deviation, before quantization.

    The noise depends on (seed, layer name) alone, so that every scheme gets the same damage.
    """

    relative_sigma: float
    seed: int

    def __post_init__(self) -> None:
        if self.relative_sigma < 0:
            raise ConfigurationError(
                f"WeightPerturbation.relative_sigma is {self.relative_sigma}; expected 0 (no change) or more."
            )

    def apply(self, name: str, weight: Tensor) -> Tensor:
        """weight float32 [out, in] -> a changed copy."""
        digest = hashlib.sha256(f"{self.seed}:{name}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big", signed=True))
        noise = torch.randn(weight.shape, generator=generator)
        return weight + noise * (self.relative_sigma * weight.std())
