"""How far each quality tier was measured on each arm, as a run's manifest keeps it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

QualityTier = Literal["distribution", "likelihood", "answers"]
"""Next-token distributions over the baseline's own answers; log-probs of given answers (the tasks' likelihood twins);
generated answers to task items, with the habits seen in them."""


class TierStatus(BaseModel):
    """One tier on one arm. A tier that was not asked for has no status."""

    model_config = ConfigDict(extra="forbid")

    tier: QualityTier
    arm_id: str
    status: Literal["exact", "partial", "not_measurable"]
    reason: str = Field(default="", description="why not exactly; a clause without a full stop")
    first_failure: str = Field(
        default="",
        description="how the first item failed; a server's words may quote the item, so --no-text drops them",
    )

    @property
    def in_words(self) -> str:
        """The reason, with the first failure where it is kept."""
        return f"{self.reason} (the first failure: {self.first_failure})" if self.first_failure else self.reason
