"""Who waits: length buckets inside SLO classes, in order of arrival within each."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Collection, Iterator
from itertools import islice

from quantgate_engine.request import Request
from quantgate_engine.scheduler.slo_class import SLOClass


def _rank(request: Request) -> int:
    return request.rank


class _Lane:
    """One bucket of one class. New requests come in order of rank; those that were preempted come back to theirs."""

    def __init__(self, slo_class: SLOClass) -> None:
        # Not a plain dict, which takes the longer to find its first entry the more were taken out before it.
        self.new: OrderedDict[str, Request] = OrderedDict()
        self.returned: dict[str, Request] = {}
        self._max_wait_ns = None if slo_class.max_wait_s is None else round(slo_class.max_wait_s * 1e9)

    def in_order(self) -> Iterator[Request]:
        if not self.returned:
            return iter(self.new.values())
        return heapq.merge(sorted(self.returned.values(), key=_rank), self.new.values(), key=_rank)

    def first(self, count: int) -> list[Request]:
        return list(islice(self.in_order(), count))

    def impatient(self, now_ns: int, count: int) -> Iterator[Request]:
        """Of the first `count` those that have waited for the class's maximum wait: the order is that of arrival."""
        if self._max_wait_ns is None:
            return
        for request in islice(self.in_order(), count):
            if now_ns - request.arrived_ns < self._max_wait_ns:
                return
            yield request


class WaitingRequests:
    """The prefill queue. Adding and leaving are O(1); what a step looks at does not grow with the number that waits.

    Order: first whoever was passed over `max_overtakes` times, or has waited for its class's maximum wait, in order of
    arrival; then class by class, the most urgent first, and in each the buckets of shorter prompts before longer ones.
    """

    def __init__(self, classes: tuple[SLOClass, ...], length_buckets: tuple[int, ...], max_overtakes: int) -> None:
        self._classes = {slo_class.name: slo_class for slo_class in classes}
        self._default = classes[0]
        self._bounds = length_buckets
        self._max_overtakes = max_overtakes
        self._lanes = {
            (slo_class.name, bucket): _Lane(slo_class)
            for slo_class in classes
            for bucket in range(len(length_buckets) + 1)
        }
        self._aged: dict[str, Request] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def class_of(self, request: Request) -> SLOClass:
        """The class that the request names, or the most urgent one."""
        return self._classes.get(request.terms.slo_class or self._default.name, self._default)

    def has_aged(self, request: Request) -> bool:
        """Whether it was passed over so often that nobody may pass it any more."""
        return request.times_overtaken >= self._max_overtakes

    def add(self, request: Request) -> None:
        lane = self._lane_of(request)
        (lane.returned if request.preemptions else lane.new)[request.request_id] = request
        self._count += 1
        if self.has_aged(request):
            self._aged[request.request_id] = request

    def remove(self, request: Request) -> None:
        lane = self._lane_of(request)
        del (lane.returned if request.preemptions else lane.new)[request.request_id]
        self._count -= 1
        self._aged.pop(request.request_id, None)

    def candidates(self, now_ns: int) -> Iterator[Request]:
        """Those that may be admitted next, in order; of a lane no more than can be passed over.

        The one that was given last may leave before the next is asked for.
        """
        urgent = self._urgent(now_ns)
        yield from urgent.values()
        for lane in self._lanes.values():
            for request in lane.first(self._max_overtakes + 1):
                if request.request_id not in urgent:
                    yield request

    def note_admission(self, admitted: Request, held_back: Collection[str]) -> bool:
        """Counts those that `admitted`, which has just left, has overtaken; true where one of them has aged by that.

        They are the earlier ones of its own lane, and the head of each other lane: behind a head nobody starves,
        because a lane keeps its order. Those that are `held_back` wait for something that `admitted` did not take, so
        it did not overtake them.
        """
        own = self._lane_of(admitted)
        somebody_has_aged = False
        for lane in self._lanes.values():
            for request in lane.in_order():
                if request.rank > admitted.rank:
                    break
                if request.request_id not in held_back:
                    request.times_overtaken += 1
                    if self.has_aged(request):
                        self._aged[request.request_id] = request
                        somebody_has_aged = True
                if lane is not own:
                    break
        return somebody_has_aged

    def overdue(self, now_ns: int, max_wait_ns: int) -> list[Request]:
        """New requests that have waited for longer than `max_wait_ns`; those that were preempted are not new."""
        found: list[Request] = []
        for lane in self._lanes.values():
            for request in lane.new.values():
                if now_ns - request.arrived_ns <= max_wait_ns:
                    break
                found.append(request)
        return found

    def everyone(self) -> list[Request]:
        return [request for lane in self._lanes.values() for request in lane.in_order()]

    def never_started(self) -> list[Request]:
        """Those that were not let in yet."""
        return [request for lane in self._lanes.values() for request in lane.new.values()]

    def _urgent(self, now_ns: int) -> dict[str, Request]:
        """Those that go before all others, in order of arrival."""
        found = dict(self._aged)
        for lane in self._lanes.values():
            for request in lane.impatient(now_ns, self._max_overtakes + 1):
                found[request.request_id] = request
        return {request.request_id: request for request in sorted(found.values(), key=_rank)}

    def _lane_of(self, request: Request) -> _Lane:
        bucket = bisect_left(self._bounds, len(request.prompt_token_ids))
        return self._lanes[self.class_of(request).name, bucket]
