"""What a suite says of its arms: each kind of target has its own settings, told apart by the field `target`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

from quantgate.arm_life.settings import LaunchSettings
from quantgate.targets.openai.settings import EndpointSettings
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.kv.settings import KVDtypeName
from quantgate_engine.quant.scheme_text import has_exceptions, scheme_text

BUNDLED: Literal["bundled"] = "bundled"
OPENAI: Literal["openai"] = "openai"
_ID = r"^[A-Za-z0-9._-]*$"


class BundledArmConfig(BaseModel):
    """One precision of the suite's model on the bundled engine, weights and KV cache. The id defaults to the scheme.

    scheme: of all linear layers, or a map with exceptions by name; its id defaults to `mixed`. model: a checkpoint of
    its own, made of the suite's model. kv_dtype: null takes that of the suite's engine.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: Literal["bundled"] = BUNDLED
    scheme: str = Field(
        description="name, NAME+PATTERN=NAME..., or a map from patterns of layer names and `default` to names",
        json_schema_extra={"type": ["string", "object"], "additionalProperties": {"type": "string"}},
    )
    id: str = Field("", pattern=_ID)
    role: Literal["baseline", "candidate"] = "candidate"
    model: str | None = Field(None, min_length=1, description="a quantized build of the suite's model; null: itself")
    kv_dtype: KVDtypeName | None = None

    @field_validator("scheme", mode="before")
    @classmethod
    def _as_text(cls, scheme: object) -> object:
        if not isinstance(scheme, Mapping):
            return scheme
        try:
            return scheme_text({str(pattern): str(name) for pattern, name in scheme.items()})
        except ConfigurationError as error:
            # Told with the place in the file.
            raise ValueError(str(error).rstrip(".")) from error

    @property
    def arm_id(self) -> str:
        return self.id or ("mixed" if has_exceptions(self.scheme) else self.scheme)


class OpenAIArmConfig(EndpointSettings):
    """A server that speaks OpenAI's protocol, running already or launched for the run."""

    target: Literal["openai"]
    id: str = Field(min_length=1, pattern=_ID)
    role: Literal["baseline", "candidate"] = "candidate"
    scheme: str | None = Field(None, description="precision that the server runs, where it does not tell it itself")
    launch: LaunchSettings | None = Field(None, description="how to start and stop the server; null: it runs already")

    @property
    def arm_id(self) -> str:
        return self.id


def _target_of(arm: Any) -> str:
    return str(arm.get("target", BUNDLED) if isinstance(arm, dict) else getattr(arm, "target", BUNDLED))


ArmConfig = Annotated[
    Annotated[BundledArmConfig, Tag(BUNDLED)] | Annotated[OpenAIArmConfig, Tag(OPENAI)], Discriminator(_target_of)
]
