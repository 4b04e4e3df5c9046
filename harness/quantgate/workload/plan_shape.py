"""The shape of what is replayed, to set beside the shape of what was recorded."""

from __future__ import annotations

from quantgate.traces.traffic_shape import TrafficShape, shape_of
from quantgate.workload.plan import ReplayPlan


def inspect_plan(plan: ReplayPlan) -> TrafficShape:
    """The plan's shape by its schedule and its real prompt lengths. Raises ValueError for a plan without requests."""
    return shape_of(
        [request.scheduled_ns for request in plan.requests],
        # 0 stands for a prompt that nobody counted.
        [request.prompt_tokens or None for request in plan.requests],
        [request.output_tokens for request in plan.requests],
    )
