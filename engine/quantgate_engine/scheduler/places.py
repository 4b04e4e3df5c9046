"""Places among the active requests, some of them reserved for a class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from quantgate_engine.request import Request
from quantgate_engine.scheduler.slo_class import SLOClass


class Places:
    """Which class may take which place."""

    def __init__(self, classes: tuple[SLOClass, ...], class_of: Callable[[Request], SLOClass]) -> None:
        self._class_of = class_of
        self._order = {slo_class.name: place for place, slo_class in enumerate(classes)}
        self._reserved = {slo_class.name: slo_class.reserved_active for slo_class in classes}

    def order_of(self, request: Request) -> int:
        """The place of the request's class, 0 for the most urgent."""
        return self._order[self._class_of(request).name]

    def left(self, running: Iterable[Request], max_active: int) -> PlacesLeft:
        """What `running` leave of `max_active` places."""
        reserved = {name: places for name, places in self._reserved.items() if places}
        taken = Counter(self._class_of(request).name for request in running) if reserved else Counter[str]()
        return PlacesLeft(reserved, taken, max_active)


class PlacesLeft:
    """Places at one moment. Nothing is counted where none is reserved: then all that are left are free for all."""

    def __init__(self, reserved: dict[str, int], taken: Counter[str], max_active: int) -> None:
        self._reserved = reserved
        self._taken = taken
        self._max_active = max_active

    def has_one_for(self, slo_class: SLOClass) -> bool:
        """Whether a place is left that is not kept for another class."""
        if not self._reserved or not self._taken:
            return True
        kept = sum(
            max(0, places - self._taken[name]) for name, places in self._reserved.items() if name != slo_class.name
        )
        return self._taken.total() + kept < self._max_active

    def take(self, slo_class: SLOClass) -> None:
        if self._reserved:
            self._taken[slo_class.name] += 1
