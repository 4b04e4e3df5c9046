"""How far one quality tier can be measured, and why not further."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SupportLevel = Literal["exact", "partial", "not_measurable"]


class TierSupport(BaseModel):
    """`reason` is empty for "exact"; else a clause that ends a sentence such as "measured in part: ..."."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    status: SupportLevel = Field(description="measured exactly, in part (another metric, labelled), or not at all")
    reason: str = Field("", description="why it is not measured exactly")


EXACT = TierSupport(status="exact")


def partial(reason: str) -> TierSupport:
    return TierSupport(status="partial", reason=reason)


def not_measurable(reason: str) -> TierSupport:
    return TierSupport(status="not_measurable", reason=reason)
