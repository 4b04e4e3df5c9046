"""Which implementation each kernel set would take here for each scheme's linear layers, found by multiplying once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

PROBE_WIDTH = 256
PROBE_ROWS = (1, 16, 256)
"""One decode, a batch of decodes, a chunk of a prompt."""


@dataclass(frozen=True, slots=True)
class SchemePaths:
    """`paths`: operation and row class -> implementation, as the kernel set records them."""

    kernel_set: str
    scheme: str
    storage_dtype: str
    compute_dtype: str
    paths: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def probe_kernel_paths() -> list[SchemePaths]:
    from quantgate_engine.quant.schemes import SCHEMES
    from quantgate_kernels.registry import KERNEL_SETS

    return [_probe(kernel_set, scheme) for kernel_set in KERNEL_SETS for scheme in SCHEMES]


def _probe(kernel_set: str, scheme_name: str) -> SchemePaths:
    import torch

    from quantgate_engine.quant.schemes import find_scheme
    from quantgate_kernels.registry import make_kernel_set
    from quantgate_kernels.types import dtype_name

    scheme, kernels = find_scheme(scheme_name), make_kernel_set(kernel_set)
    precision = scheme.precision(torch.device("cpu"))
    with torch.inference_mode():
        # Any weight takes the same path: the choice goes by form and row count.
        values = torch.eye(PROBE_WIDTH)
        weight = kernels.stored_form(scheme.quantize(values, precision))
        for rows in PROBE_ROWS:
            kernels.linear(torch.ones(rows, PROBE_WIDTH, dtype=precision.compute), weight)
    return SchemePaths(
        kernel_set, scheme_name, dtype_name(precision.storage), dtype_name(precision.compute), dict(kernels.paths)
    )
