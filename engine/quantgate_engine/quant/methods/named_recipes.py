"""Recipes by name, as `quantgate quantize --scheme` takes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.calibration.settings import CalibrationSettings
from quantgate_engine.quant.methods.clipping import ClipSearch
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.group_fit import OFFERED_GROUP_SIZES
from quantgate_engine.quant.methods.recipe import Recipe


@dataclass(frozen=True, slots=True)
class NamedRecipe:
    """int8_activations: products with the weights round activations to INT8, one scale per token."""

    name: str
    summary: str
    recipe: Recipe
    int8_activations: bool = False

    @property
    def usual_form(self) -> str:
        """GPTQ's, which most readers take; it cannot say that activations are rounded."""
        return "compressed-tensors" if self.int8_activations else "gptq"


def _int4(group_size: int) -> list[NamedRecipe]:
    name, groups = f"int4-g{group_size}", f"INT4, one scale per {group_size} inputs"
    plain, clipped = Grid(4, group_size), Grid(4, group_size, clip=ClipSearch())
    zeros = replace(clipped, symmetric=False)
    return [
        NamedRecipe(name, f"{groups}, round to nearest", Recipe("nearest", grid=plain)),
        NamedRecipe(f"{name}-clip", f"{groups}, clipped, round to nearest", Recipe("nearest", grid=clipped)),
        NamedRecipe(f"{name}-asym", f"{groups} and one zero, clipped, round to nearest", Recipe("nearest", grid=zeros)),
        NamedRecipe(f"{name}-gptq", f"{groups}, GPTQ", Recipe("gptq", grid=clipped)),
        NamedRecipe(f"{name}-asym-gptq", f"{groups} and one zero, GPTQ", Recipe("gptq", grid=zeros)),
        NamedRecipe(f"{name}-awq", f"{groups} and one zero, AWQ", Recipe("nearest", "awq", grid=zeros)),
    ]


_WHOLE_ROWS = Grid(8, None)
NAMED_RECIPES: dict[str, NamedRecipe] = {
    named.name: named
    for named in (
        *(named for group_size in OFFERED_GROUP_SIZES for named in _int4(group_size)),
        NamedRecipe("int8-w8a16", "INT8, one scale per output", Recipe("nearest", grid=_WHOLE_ROWS)),
        NamedRecipe(
            "int8-w8a8", "INT8 weights and activations", Recipe("nearest", grid=_WHOLE_ROWS), int8_activations=True
        ),
        NamedRecipe(
            "int8-w8a8-smooth",
            "INT8 weights and activations, SmoothQuant",
            Recipe("nearest", "smoothquant", grid=_WHOLE_ROWS),
            int8_activations=True,
        ),
    )
}


def named_recipe(name: str, calibration: CalibrationSettings) -> NamedRecipe:
    """Raises ConfigurationError, with the known names, for an unknown one."""
    if name not in NAMED_RECIPES:
        raise ConfigurationError(f"Unknown scheme {name!r}; expected one of {', '.join(NAMED_RECIPES)}.")
    named = NAMED_RECIPES[name]
    return replace(named, recipe=replace(named.recipe, calibration=calibration))
