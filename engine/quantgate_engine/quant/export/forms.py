"""The forms in which a quantized checkpoint is written: a layer's tensors, and what config.json says of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Any, Protocol

from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.formats.compressed_tensors import write_int, write_packed
from quantgate_engine.quant.formats.gptq import write_gptq
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


class CheckpointForm(Protocol):
    name: str

    def require_fits(self, recipe: Recipe, *, int8_activations: bool) -> None:
        """Raises ConfigurationError where the form cannot say what the recipe asks for."""
        ...

    def tensors(self, codes: GroupedCodes, *, int8_activations: bool) -> dict[str, Tensor]:
        """Of one linear layer, by what follows its name and a dot."""
        ...

    def quantization_config(self, written: WrittenRecipe, version: str) -> dict[str, Any]:
        """For config.json."""
        ...

    def further_files(self, quantization_config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """JSON files beside config.json that other readers look for, by name."""
        ...


class GptqForm:
    """As auto-gptq began it: vLLM, gptqmodel and transformers read it."""

    name = "gptq"

    def require_fits(self, recipe: Recipe, *, int8_activations: bool) -> None:
        if int8_activations:
            raise ConfigurationError(
                "A GPTQ checkpoint cannot say that activations are rounded to INT8; write it as compressed-tensors."
            )

    def tensors(self, codes: GroupedCodes, *, int8_activations: bool) -> dict[str, Tensor]:
        return write_gptq(codes)

    def quantization_config(self, written: WrittenRecipe, version: str) -> dict[str, Any]:
        recipe = written.recipe
        dynamic = {
            f"{'-' if exception.grid is None else '+'}:{translate(exception.pattern)}": (
                {} if exception.grid is None else _gptq_grid(exception.grid)
            )
            for exception in recipe.exceptions
        }
        return {
            "quant_method": "gptq",
            "checkpoint_format": "gptq",
            **_gptq_grid(recipe.grid),
            "desc_act": written.lists_groups,
            "static_groups": False,
            "true_sequential": True,
            "lm_head": False,
            "damp_percent": recipe.gptq.damping,
            "pack_dtype": "int32",
            **({"dynamic": dynamic} if dynamic else {}),
            "meta": {"quantizer": [f"{WRITER}:{version}"]},
        }

    def further_files(self, quantization_config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        return {"quantize_config.json": {**quantization_config, "model_file_base_name": "model"}}


class CompressedTensorsForm:
    """What llm-compressor writes: vLLM and transformers read it."""

    name = "compressed-tensors"

    def require_fits(self, recipe: Recipe, *, int8_activations: bool) -> None:
        """Every grid has a place in it."""

    def tensors(self, codes: GroupedCodes, *, int8_activations: bool) -> dict[str, Tensor]:
        return write_int(codes) if int8_activations else write_packed(codes)

    def quantization_config(self, written: WrittenRecipe, version: str) -> dict[str, Any]:
        # By their names, not by the recipe's patterns: readers let other matches count first.
        exceptions = written.exceptions()
        floats = exceptions.pop(None, [])
        groups = [([EVERY_LAYER], written.recipe.grid), *((layers, grid) for grid, layers in exceptions.items())]
        return {
            "quant_method": "compressed-tensors",
            "format": "int-quantized" if written.int8_activations else "pack-quantized",
            "quantization_status": "compressed",
            "config_groups": {
                f"group_{index}": self._group(targets, grid, written) for index, (targets, grid) in enumerate(groups)
            },
            "ignore": [HEAD, *floats],
            "kv_cache_scheme": None,
            "meta": {"quantizer": [f"{WRITER}:{version}"]},
        }

    def further_files(self, quantization_config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        return {}

    def _group(self, targets: Sequence[str], grid: Grid | None, written: WrittenRecipe) -> dict[str, Any]:
        assert grid is not None
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


_TOKEN_WISE_INT8 = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}

FORMS: dict[str, CheckpointForm] = {form.name: form for form in (GptqForm(), CompressedTensorsForm())}


def _gptq_grid(grid: Grid) -> dict[str, Any]:
    return {"bits": grid.bits, "group_size": -1 if grid.group_size is None else grid.group_size, "sym": grid.symmetric}
