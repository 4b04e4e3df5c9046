"""One thing that the doctor looked at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "missing", "note"]


@dataclass(frozen=True, slots=True)
class Check:
    """status: `missing` where it is not there, `note` where it works but the user should know something.

    required: whether quantgate cannot work without it. advice: how to get it, or what follows.
    """

    name: str
    status: Status
    found: str
    required: bool = False
    advice: str | None = None

    @property
    def blocks(self) -> bool:
        return self.required and self.status == "missing"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
