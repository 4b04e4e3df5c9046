"""Places among the active requests, some of them reserved for a class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from quantgate_engine.request import Request
from quantgate_engine.scheduler.slo_class import SLOClass


class Places:
    """Who may take one of the places that are left."""

    def __init__(self, classes: tuple[SLOClass, ...], class_of: Callable[[Request], SLOClass]) -> None:
        self._class_of = class_of
        self._order = {slo_class.name: place for place, slo_class in enumerate(classes)}
        self._reserved = {slo_class.name: slo_class.reserved_active for slo_class in classes}
        self._any_reserved = any(self._reserved.values())

    def order_of(self, request: Request) -> int:
        """The place of the request's class, 0 for the most urgent."""
        return self._order[self._class_of(request).name]

    def has_place(self, request: Request, running: Iterable[Request], max_active: int) -> bool:
        """Whether a place is left that is not kept for another class."""
        if not self._any_reserved:
            return True
        taken = Counter(self._class_of(other).name for other in running)
        own = self._class_of(request).name
        kept = sum(max(0, places - taken[name]) for name, places in self._reserved.items() if name != own)
        return taken.total() + kept < max_active or not taken
