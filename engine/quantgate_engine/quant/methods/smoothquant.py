"""SmoothQuant (Xiao et al. 2022, arXiv:2211.10438): outliers of activations are moved into weights, which have room."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from quantgate_engine.errors import ConfigurationError

LEAST_GREATEST = 1e-5
"""Below it an input, or a weight's column, is taken to be this large: the authors' bound."""


@dataclass(frozen=True, slots=True)
class SmoothQuantOptions:
    """alpha: 0 leaves the activations' outliers where they are, 1 moves them into the weights altogether."""

    alpha: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise ConfigurationError(f"SmoothQuantOptions.alpha is {self.alpha}; expected 0 to 1.")


def smoothing_factors(inputs: Tensor, weights: Tensor, options: SmoothQuantOptions) -> Tensor:
    """s_j = max|x_j|**alpha / max|W_j|**(1 - alpha) (equation 4), for `apply_fold`.

    inputs, weights: float32, the greatest magnitude of each input, and of each column of the layers that read it.
    """
    known = inputs.clamp(min=LEAST_GREATEST) ** options.alpha
    return (known / weights.clamp(min=LEAST_GREATEST) ** (1 - options.alpha)).clamp(min=LEAST_GREATEST)
