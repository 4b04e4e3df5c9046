"""The forms in which a quantized checkpoint is written: a layer's tensors, and what config.json says of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import partial
from typing import Any

from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.formats.compressed_tensors import write_int, write_packed
from quantgate_engine.quant.formats.gptq import write_gptq
from quantgate_engine.quant.formats.gptq_zeros import ZeroConvention
from quantgate_engine.quant.grouped_codes import GroupedCodes
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.recipe import Recipe

WRITER = "quantgate"
HEAD = "lm_head"
EVERY_LAYER = "Linear"


@dataclass(frozen=True, slots=True)
class WrittenRecipe:
    """layers: names of the model's linear layers, the head not among them. int8_activations: of products with them.

    lists_groups: whether inputs are in groups in another order than their own.
    """

    recipe: Recipe
    layers: Collection[str]
    int8_activations: bool
    lists_groups: bool

    def exceptions(self) -> dict[Grid | None, list[str]]:
        """Layers by the grid that they have in place of the recipe's; None: they stay floats."""
        exceptions: dict[Grid | None, list[str]] = {}
        for layer in self.layers:
            grid = self.recipe.grid_of(layer)
            if grid != self.recipe.grid:
                exceptions.setdefault(grid, []).append(layer)
        return exceptions


Writer = Callable[[GroupedCodes], dict[str, Tensor]]
"""Of one linear layer, its tensors by what follows its name and a dot."""


@dataclass(frozen=True, slots=True)
class CheckpointForm:
    """layers: how the layers of a recipe are written; int8_layers: where activations are rounded to INT8 too, None
    where the form cannot say so. quantization_config: for config.json, given the writer's version. own_file: where
    other readers look for the same.
    """

    name: str
    layers: Callable[[Recipe], Writer]
    int8_layers: Callable[[Recipe], Writer] | None
    quantization_config: Callable[[WrittenRecipe, str], dict[str, Any]]
    own_file: str | None = None

    def writer(self, recipe: Recipe, *, int8_activations: bool) -> Writer:
        """Raises ConfigurationError where the form cannot say that activations are rounded."""
        if not int8_activations:
            return self.layers(recipe)
        if self.int8_layers is None:
            raise ConfigurationError(
                f"A {self.name} checkpoint cannot say that activations are rounded to INT8; choose another form."
            )
        return self.int8_layers(recipe)


def _gptq_zeros(recipe: Recipe) -> ZeroConvention:
    """Zeros that differ are stored as they are: gptqmodel takes them less one from itself alone, and readers that add
    the one without cutting it to the bits again make 16 of a zero of 0.
    """
    grids = (recipe.grid, *(exception.grid for exception in recipe.exceptions if exception.grid is not None))
    return ZeroConvention.MINUS_ONE if all(grid.symmetric for grid in grids) else ZeroConvention.AS_IS


def _gptq_config(written: WrittenRecipe, version: str) -> dict[str, Any]:
    recipe = written.recipe
    dynamic = {
        f"{'-' if exception.grid is None else '+'}:{translate(exception.pattern)}": (
            {} if exception.grid is None else _gptq_grid(exception.grid)
        )
        for exception in recipe.exceptions
    }
    return {
        "quant_method": "gptq",
        "checkpoint_format": _gptq_zeros(recipe).value,
        **_gptq_grid(recipe.grid),
        "desc_act": written.lists_groups,
        "static_groups": False,
        "true_sequential": True,
        "lm_head": False,
        "damp_percent": recipe.gptq.damping,
        "pack_dtype": "int32",
        **({"dynamic": dynamic} if dynamic else {}),
        "meta": _meta(version),
    }


def _gptq_grid(grid: Grid) -> dict[str, Any]:
    return {"bits": grid.bits, "group_size": -1 if grid.group_size is None else grid.group_size, "sym": grid.symmetric}


def _compressed_tensors_config(written: WrittenRecipe, version: str) -> dict[str, Any]:
    # Exceptions by their names, not by the recipe's patterns: readers let other matches count first.
    exceptions = written.exceptions()
    floats = exceptions.pop(None, [])
    groups = [([EVERY_LAYER], written.recipe.grid), *((layers, grid) for grid, layers in exceptions.items() if grid)]
    return {
        "quant_method": "compressed-tensors",
        "format": "int-quantized" if written.int8_activations else "pack-quantized",
        "quantization_status": "compressed",
        "config_groups": {
            f"group_{index}": _compressed_group(targets, grid, written) for index, (targets, grid) in enumerate(groups)
        },
        "ignore": [HEAD, *floats],
        "kv_cache_scheme": None,
        "meta": _meta(version),
    }


def _compressed_group(targets: Sequence[str], grid: Grid, written: WrittenRecipe) -> dict[str, Any]:
    whole_rows = grid.group_size is None
    weights = {
        "num_bits": grid.bits,
        "type": "int",
        "symmetric": grid.symmetric,
        "strategy": "channel" if whole_rows else "group",
        "group_size": None if whole_rows else grid.group_size,
        "actorder": "group" if written.lists_groups else None,
        "dynamic": False,
    }
    return {
        "targets": list(targets),
        "weights": weights,
        "input_activations": _TOKEN_WISE_INT8 if written.int8_activations else None,
        "output_activations": None,
    }


def _meta(version: str) -> dict[str, Any]:
    return {"quantizer": [f"{WRITER}:{version}"]}


_TOKEN_WISE_INT8 = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}

FORMS: dict[str, CheckpointForm] = {
    form.name: form
    for form in (
        CheckpointForm(
            "gptq",
            lambda recipe: partial(write_gptq, convention=_gptq_zeros(recipe)),
            None,
            _gptq_config,
            own_file="quantize_config.json",
        ),
        CheckpointForm(
            "compressed-tensors", lambda _recipe: write_packed, lambda _recipe: write_int, _compressed_tensors_config
        ),
    )
}
"""The first is as auto-gptq began it and gptqmodel goes on, the second what llm-compressor writes."""
