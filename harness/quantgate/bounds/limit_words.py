"""The limits of a device as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_GIGA = 1e9
_LIMITS = {
    "read_bytes_per_s": ("memory read", "GB/s"),
    "matmul_ops_per_s": ("16-bit products", "GOP/s"),
    "int8_ops_per_s": ("int8 products", "GOP/s"),
    "float32_ops_per_s": ("float32 products", "GOP/s"),
}
NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class LimitWords:
    """`memory read`, `80.1 GB/s`, `cpp`; the last is empty where nothing was measured."""

    title: str
    rate: str
    by: str


def limit_words(limits: Mapping[str, Any]) -> list[LimitWords]:
    """limits: the fields of `DeviceLimits`."""
    return [
        LimitWords(
            title,
            NOT_MEASURED if limits[name] is None else f"{limits[name] / _GIGA:,.1f} {unit}",
            limits["measured_by"].get(name, ""),
        )
        for name, (title, unit) in _LIMITS.items()
    ]
