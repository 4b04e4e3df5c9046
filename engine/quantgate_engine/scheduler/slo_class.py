"""Classes of requests that are promised unlike things."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.setting_checks import require_at_least, require_new_name, require_seconds, require_type


@dataclass(frozen=True, slots=True)
class SLOClass:
    """One class.

    max_wait_s: a request that has waited so long goes before all others, whatever their class and length; None: never.
    max_prefills: requests of the class that may be prefilled at once: few for small batches with short steps, None for
    as many as fit.
    reserved_active: places among the active requests that no other class may take, so that an urgent request finds one
    also where a flood of others came before it.
    """

    name: str
    max_wait_s: float | None = None
    max_prefills: int | None = None
    reserved_active: int = 0

    def __post_init__(self) -> None:
        require_type("SLOClass.name", self.name, str)
        require_new_name("SLOClass.name", self.name)
        require_seconds("SLOClass.max_wait_s", self.max_wait_s, optional=True, may_be_zero=True)
        require_at_least("SLOClass.max_prefills", self.max_prefills, 1, optional=True)
        require_at_least("SLOClass.reserved_active", self.reserved_active, 0)


INTERACTIVE = SLOClass("interactive", max_wait_s=1.0, max_prefills=8)
BATCH = SLOClass("batch")
