"""What every variant of the rotary embedding gives: a frequency for each pair of a head's values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rotation:
    """How queries and keys are rotated.

    frequencies: head_dim / 2 of them, radians per position; pair i of a head turns by position * frequencies[i].
    attention_factor: what cos and sin are multiplied by, so that scores grow by its square.
    """

    frequencies: tuple[float, ...]
    attention_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class RotatedModel:
    """What a variant may need to know of the model.

    stated_context: `max_position_embeddings`, in tokens. original_context: that of the training before the context was
    extended, where config.json states it.
    """

    head_dim: int
    stated_context: int
    original_context: int | None = None

    @property
    def trained_context(self) -> int:
        """transformers takes the stated context where no original one is given (`standardize_rope_params`)."""
        return self.original_context or self.stated_context


class RopeScaling(ABC):
    """One variant.

    A rotation is chosen once for an engine: keys lie in the cache already rotated, and if it depended on a sequence's
    length, those that are stored would become wrong as the sequence grows.
    """

    @abstractmethod
    def rotation(self, head_dim: int, theta: float, longest_context: int, /) -> Rotation:
        """longest_context: tokens of the longest sequence that the engine will serve."""

    def context_limit(self, stated_context: int) -> int:
        """Tokens that the model is made for."""
        return stated_context


def base_frequencies(head_dim: int, theta: float) -> tuple[float, ...]:
    """theta^(-2i / head_dim) for i below head_dim / 2 (Su et al. 2021, arXiv:2104.09864, section 3.2.2)."""
    return tuple(theta ** (-exponent / head_dim) for exponent in range(0, head_dim, 2))
