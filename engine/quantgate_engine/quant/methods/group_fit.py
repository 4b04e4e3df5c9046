"""Whether a recipe's groups divide the rows of a model, said before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.methods.recipe import Recipe

OFFERED_GROUP_SIZES = (32, 64, 128)


def require_fit(recipe: Recipe, inputs: Mapping[str, int]) -> None:
    """inputs: whole name of each linear layer -> its inputs.

    Raises ConfigurationError, with the kinds of layer that a group size does not fit and the sizes that would do.
    """
    misfits: dict[int, dict[str, int]] = {}
    for name, count in inputs.items():
        grid = recipe.grid_of(name)
        if grid is not None and grid.group_size is not None and count % grid.group_size:
            misfits.setdefault(grid.group_size, {})[name.rpartition(".")[2]] = count
    for size, kinds in misfits.items():
        named = ", ".join(f"{kind} ({count} inputs)" for kind, count in kinds.items())
        fitting = [str(other) for other in OFFERED_GROUP_SIZES if not any(count % other for count in kinds.values())]
        remedy = f"groups of {' or '.join(fitting)}, or whole rows" if fitting else "whole rows"
        raise ConfigurationError(f"Groups of {size} do not divide the rows of {named}; use {remedy}.")
