"""The command that is really run: placeholders filled in, the program found, the environment complete."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from quantgate.arm_life.settings import COMMAND_FIELD, LaunchSettings
from quantgate_engine.errors import ConfigurationError

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_CHARACTERS = 6
"""A shorter value is a setting, and to blot it out would blot out half of what a server says."""

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class PreparedCommand:
    """secrets: values that the settings add to the environment; they are blotted out of whatever is quoted."""

    words: list[str]
    cwd: Path
    environment: dict[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


def address_of(url: str) -> tuple[str, int]:
    """Host and port of a server's URL."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme]


def prepare_command(
    launch: LaunchSettings, url: str, *, arm_id: str, environment: Mapping[str, str], folder: Path
) -> PreparedCommand:
    """`environment` is this process's; a relative `cwd` counts from `folder`.

    Raises ConfigurationError where the program, the folder or a variable is missing.
    """
    cwd = folder / launch.cwd if launch.cwd is not None else Path.cwd()
    if not cwd.is_dir():
        raise ConfigurationError(
            f"Arm {arm_id}, field launch.cwd: {cwd} is no folder; expected the folder to run the server in."
        )
    added = {name: _filled_in(value, environment, f"Arm {arm_id}, field launch.environment.{name}")
             for name, value in launch.environment.items()}  # fmt: skip
    complete = {**environment, **added}
    host, port = address_of(url)
    words = [word.replace("{url}", url).replace("{host}", host).replace("{port}", str(port)) for word in launch.words]
    program = shutil.which(words[0] if "/" not in words[0] else str(cwd / words[0]), path=complete.get("PATH"))
    if program is None:
        raise ConfigurationError(
            f"Arm {arm_id}, field {COMMAND_FIELD}: there is no program {words[0]!r}; install it or give its whole path."
        )
    return PreparedCommand(
        words=[program, *words[1:]],
        cwd=cwd,
        environment=complete,
        secrets=tuple(value for value in added.values() if len(value) >= _SECRET_CHARACTERS),
    )


def _filled_in(value: str, environment: Mapping[str, str], place: str) -> str:
    def variable(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in environment:
            raise ConfigurationError(f"{place}: the environment variable {name} is not set; set it before the run.")
        return environment[name]

    return _REFERENCE.sub(variable, value)
