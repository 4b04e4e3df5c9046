"""How one arm's server is started, known to be ready, emptied between turns, watched and stopped."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator

NOT_KEPT = "(not kept)"
"""Stands for the values of environment variables wherever settings are written."""

COMMAND_FIELD = "launch.command (--launch-baseline, --launch-candidate)"
"""What to look at where a command is wrong: the field of a suite, or the flags of who has none."""

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

UrlPath = Annotated[str, Field(pattern=r"^/\S*$")]
CallText = Annotated[str, Field(pattern=r"^(GET|POST) /\S*$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class ServerCall:
    """One request to the server that is no generation."""

    method: Literal["GET", "POST"]
    path: str


class ReadyCheck(_Strict):
    """The server is ready when the first of `paths` that it knows answers with `status`."""

    paths: list[UrlPath] = Field(
        ["/health", "/v1/models"], min_length=1, description="tried in this order; one that answers 404 is passed over"
    )
    status: int = Field(200, ge=100, le=599)
    timeout_s: float = Field(
        600.0, gt=0, description="from the start of the command; loading large weights takes minutes"
    )
    interval_s: float = Field(0.25, gt=0)


class StopSettings(_Strict):
    """The signal goes to every process of the server; what still runs after `grace_s` is killed."""

    signal: Literal["SIGTERM", "SIGINT", "SIGQUIT", "SIGKILL"] = "SIGTERM"
    grace_s: float = Field(30.0, ge=0)


class LaunchSettings(_Strict):
    """The life of one server.

    In `command`, {url}, {host} and {port} stand for those of the arm's URL. A value in `environment` may name a
    variable of this process, as ${NAME}; no file, log or error of a run shows the values.
    """

    command: str | list[str] | None = Field(
        None, description="a list of words, or text split as a shell would; null: the server runs already"
    )
    cwd: str | None = Field(None, description="folder to run it in; null: the current one")
    environment: dict[str, str] = Field({}, repr=False, description="added to the environment of this process")
    ready: ReadyCheck = ReadyCheck()
    stop: StopSettings = StopSettings()
    reset_prefix_cache: CallText | list[CallText] | None = Field(
        None, description="such as POST /reset_prefix_cache, sent before each turn; null: the cache is kept"
    )
    metrics_path: UrlPath | None = Field("/metrics", description="Prometheus metrics; null: they are not read")

    @field_validator("command")
    @classmethod
    def _has_a_program(cls, command: str | list[str] | None) -> str | list[str] | None:
        if command is None:
            return None
        try:
            words = shlex.split(command) if isinstance(command, str) else command
        except ValueError as error:
            raise ValueError(
                f"the command cannot be split into words ({error}); close the quotes, or give a list in a suite"
            ) from None
        if not words or not words[0].strip():
            raise ValueError("the command is empty; expected the program and its arguments")
        return command

    @field_validator("environment")
    @classmethod
    def _names_variables(cls, environment: dict[str, str]) -> dict[str, str]:
        for name in environment:
            if not _VARIABLE_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of an environment variable; expected letters, digits and _")
        return environment

    @field_serializer("environment")
    def _without_values(self, environment: dict[str, str]) -> dict[str, str]:
        return dict.fromkeys(environment, NOT_KEPT)

    @property
    def words(self) -> list[str]:
        """The program and its arguments, placeholders as they are; empty for a server that runs already."""
        return shlex.split(self.command) if isinstance(self.command, str) else self.command or []

    @property
    def reset_calls(self) -> list[ServerCall]:
        texts = [self.reset_prefix_cache] if isinstance(self.reset_prefix_cache, str) else self.reset_prefix_cache or []
        return [_call(text) for text in texts]


def _call(text: str) -> ServerCall:
    method, path = text.split(" ", 1)
    return ServerCall("GET" if method == "GET" else "POST", path)
