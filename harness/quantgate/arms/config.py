"""What a suite says of its arms: each kind of target has its own settings, told apart by the field `target`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from quantgate.arm_life.settings import LaunchSettings
from quantgate.targets.openai.settings import EndpointSettings
from quantgate_engine.kv.settings import KVDtypeName

BUNDLED: Literal["bundled"] = "bundled"
OPENAI: Literal["openai"] = "openai"
_ID = r"^[A-Za-z0-9._-]*$"


class BundledArmConfig(BaseModel):
    """One precision of the suite's model on the bundled engine, weights and KV cache. The id defaults to the scheme.

    kv_dtype: null takes that of the suite's engine.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: Literal["bundled"] = BUNDLED
    scheme: str
    id: str = Field("", pattern=_ID)
    role: Literal["baseline", "candidate"] = "candidate"
    kv_dtype: KVDtypeName | None = None

    @property
    def arm_id(self) -> str:
        return self.id or self.scheme


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
