"""How a checkpoint was made, from start to end: what provenance records and a resumed run must find unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, Literal, get_args

from pydantic import TypeAdapter, ValidationError

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.calibration.settings import CalibrationSettings
from quantgate_engine.quant.methods.awq import AwqOptions
from quantgate_engine.quant.methods.clipping import ClipSearch
from quantgate_engine.quant.methods.gptq import GptqOptions
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.smoothquant import SmoothQuantOptions

Rounding = Literal["nearest", "gptq"]
Folding = Literal["none", "awq", "smoothquant"]


@dataclass(frozen=True, slots=True)
class GridException:
    """Layers whose name fits the pattern (`*.down_proj`, `model.layers.0.*`) get this grid; None: they stay floats."""

    pattern: str
    grid: Grid | None


@dataclass(frozen=True, slots=True)
class Recipe:
    """folding: what is done to a layer before its weights are rounded. exceptions: the first that fits counts.

    By default scales are searched for: on the bundled model that gains GPTQ more than any of its other options.
    """

    rounding: Rounding = "gptq"
    folding: Folding = "none"
    grid: Grid = field(default_factory=lambda: Grid(clip=ClipSearch()))
    exceptions: tuple[GridException, ...] = ()
    gptq: GptqOptions = field(default_factory=GptqOptions)
    awq: AwqOptions = field(default_factory=AwqOptions)
    smoothquant: SmoothQuantOptions = field(default_factory=SmoothQuantOptions)
    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)

    def __post_init__(self) -> None:
        for name, value, known in (
            ("rounding", self.rounding, get_args(Rounding)),
            ("folding", self.folding, get_args(Folding)),
        ):
            if value not in known:
                raise ConfigurationError(f"Recipe.{name} is {value!r}; expected one of {', '.join(known)}.")

    def grid_of(self, name: str) -> Grid | None:
        """name: of a linear layer, `model.layers.3.mlp.down_proj`."""
        for exception in self.exceptions:
            if fnmatchcase(name, exception.pattern):
                return exception.grid
        return self.grid

    def grids(self) -> tuple[Grid, ...]:
        """Every one that a layer might get."""
        return (self.grid, *(exception.grid for exception in self.exceptions if exception.grid is not None))

    @property
    def needs_text(self) -> bool:
        """Whether layers must see calibration text; rounding to nearest needs none but to weigh what clipping costs."""
        clipping = any(grid.clip is not None for grid in self.grids())
        return self.rounding != "nearest" or self.folding != "none" or clipping

    def record(self) -> dict[str, Any]:
        """As JSON holds it; `read_recipe` reads it back."""
        record: dict[str, Any] = TypeAdapter(Recipe).dump_python(self, mode="json")
        return record


def read_recipe(record: Mapping[str, Any]) -> Recipe:
    """Raises ConfigurationError, with the key, for what is no recipe. A key that is missing has its default."""
    try:
        recipe = TypeAdapter(Recipe).validate_python(record)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigurationError(f"recipe.{'.'.join(map(str, first['loc']))}: {first['msg']}.") from error
    unknown = _unknown_keys(record, recipe.record(), "recipe")
    if unknown:
        raise ConfigurationError(f"{unknown[0]}: a recipe has no such key.")
    return recipe


def _unknown_keys(found: Any, known: Any, place: str) -> list[str]:
    if isinstance(found, Mapping) and isinstance(known, Mapping):
        own = [f"{place}.{key}" for key in found if key not in known]
        shared = [(found[key], known[key], f"{place}.{key}") for key in found if key in known]
    elif isinstance(found, list) and isinstance(known, list):
        own = []
        shared = [(mine, its, f"{place}.{i}") for i, (mine, its) in enumerate(zip(found, known, strict=True))]
    else:
        return []
    return [*own, *chain.from_iterable(_unknown_keys(*pair) for pair in shared)]
