"""The flags that set up the bundled engine: the most used ones, and a file for the rest; several commands take them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quantgate.cli.flag_values import settings_from_flags
from quantgate_engine.config import EngineConfig
from quantgate_engine.device_name import DeviceName
from quantgate_engine.kv.settings import KVDtypeName

if TYPE_CHECKING:
    from quantgate.engine_settings.engine import EngineSettings

ENGINE_DEFAULTS = EngineConfig()
"""What help texts tell: a flag that is not given leaves the setting to the file, and then to the engine."""


@dataclass(frozen=True, slots=True)
class EngineFlags:
    """None: not given."""

    engine: Annotated[
        Path | None, typer.Option(help="YAML file with settings as a suite's `engine` has them; flags go before it.")
    ] = None
    max_active_requests: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Requests that hold KV at the same time.",
            show_default=str(ENGINE_DEFAULTS.max_active_requests),
        ),
    ] = None
    max_step_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Token budget of one engine step.", show_default=str(ENGINE_DEFAULTS.max_step_tokens)),
    ] = None
    device: Annotated[
        DeviceName | None,
        typer.Option(help="Where to compute; auto: on a GPU if any.", show_default=ENGINE_DEFAULTS.device),
    ] = None
    kv_dtype: Annotated[
        KVDtypeName | None, typer.Option(help="Precision of the KV cache.", show_default=ENGINE_DEFAULTS.kv_dtype)
    ] = None
    prefix_sharing: Annotated[
        bool | None,
        typer.Option("--prefix-sharing/--no-prefix-sharing", help="Requests with equal first tokens share their KV."),
    ] = None
    deterministic: Annotated[
        bool | None,
        typer.Option("--deterministic", help="A request's tokens do not depend on what is computed beside it."),
    ] = None

    def settings(self, **more: Any) -> EngineSettings:
        """The settings of the file, with those of the flags that are given, and of `more`, in their place.

        Raises ConfigurationError with file, line and field, or with the flag at fault.
        """
        from quantgate.engine_settings.engine import EngineSettings
        from quantgate.validation import load_yaml_model

        values: dict[str, Any] = (
            {} if self.engine is None else load_yaml_model(self.engine, EngineSettings).model_dump(exclude_unset=True)
        )
        given = {
            "max_active_requests": self.max_active_requests,
            "max_step_tokens": self.max_step_tokens,
            "device": self.device,
            "kv_dtype": self.kv_dtype,
            "deterministic": self.deterministic,
            **more,
        }
        values |= {name: value for name, value in given.items() if value is not None}
        if self.prefix_sharing is not None:
            values["cache"] = values.get("cache", {}) | {"prefix_sharing": self.prefix_sharing}
        of_the_file = dict.fromkeys(values.keys() - given.keys(), "--engine")
        return settings_from_flags(EngineSettings, values, of_the_file | {"cache": "--prefix-sharing"})
