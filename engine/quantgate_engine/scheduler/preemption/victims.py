"""Which running request gives way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from quantgate_engine.request import Request
from quantgate_engine.scheduler.preemption.settings import VictimPolicyName

ClassOrder = Callable[[Request], int]
"""The place of a request's class, 0 for the most urgent one."""

VictimKey = Callable[[Request, ClassOrder], tuple[int, ...]]


def last_in(request: Request, _class_order: ClassOrder) -> tuple[int, ...]:
    return (request.admission_number,)


def least_computed(request: Request, _class_order: ClassOrder) -> tuple[int, ...]:
    return (-request.num_computed_tokens, request.admission_number)


def lowest_class(request: Request, class_order: ClassOrder) -> tuple[int, ...]:
    return (class_order(request), request.admission_number)


VICTIM_POLICIES: Mapping[VictimPolicyName, VictimKey] = MappingProxyType(
    {"last-in": last_in, "least-computed": least_computed, "lowest-class": lowest_class}
)


def choose_victim(
    running: Sequence[Request], policy: VictimKey, class_order: ClassOrder, max_preemptions: int
) -> Request:
    """The request of `running` with the greatest key, of those that were not preempted too often yet.

    Where all were, the one that arrived last: the oldest then goes on, whatever the policy says, so that requests which
    push each other out come to their ends all the same.
    """
    spared = [request for request in running if request.preemptions < max_preemptions]
    if spared:
        return max(spared, key=lambda request: policy(request, class_order))
    return max(running, key=lambda request: request.rank)
