"""Transforms of a recorded workload. A new one is a file here and a name in `WorkloadTransform`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quantgate.workload.transforms.arrivals import Arrivals
from quantgate.workload.transforms.base import Transform, TransformContext, Transformed
from quantgate.workload.transforms.clip import Clip
from quantgate.workload.transforms.limit import Limit
from quantgate.workload.transforms.rate_cap import RateCap
from quantgate.workload.transforms.sample import Sample
from quantgate.workload.transforms.speed import Speed
from quantgate.workload.transforms.spread_ticks import SpreadTicks
from quantgate.workload.transforms.thin import Thin
from quantgate.workload.transforms.window import Window

# A closed union, not an open registry: suites embed it, and their JSON schema lists every kind with its settings.
WorkloadTransform = Annotated[
    Window | Speed | Thin | Clip | Limit | Sample | SpreadTicks | Arrivals | RateCap, Field(discriminator="kind")
]

__all__ = [
    "Arrivals",
    "Clip",
    "Limit",
    "RateCap",
    "Sample",
    "Speed",
    "SpreadTicks",
    "Thin",
    "Transform",
    "TransformContext",
    "Transformed",
    "Window",
    "WorkloadTransform",
]
