"""Which implementation each operation of each kernel set takes here, found by computing once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from quantgate_kernels.kernel_set import KernelSet

PROBE_WIDTH = 256
PROBE_ROWS = (1, 16, 256)
"""One decode, a batch of decodes, a chunk of a prompt."""


@dataclass(frozen=True, slots=True)
class SchemePaths:
    """`paths`: operation and row class -> implementation, as the kernel set records them.

    `compute_dtype`: as in `ModelInfo`.
    """

    kernel_set: str
    scheme: str
    storage_dtype: str
    compute_dtype: str
    paths: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def probe_kernel_paths() -> list[SchemePaths]:
    """For every scheme on every kernel set that this machine can run."""
    from quantgate_engine.quant.schemes import SCHEMES
    from quantgate_kernels.registry import KERNEL_SETS

    return [_probe(kernel_set, scheme) for kernel_set in KERNEL_SETS if _runs(kernel_set) for scheme in SCHEMES]


def _runs(kernel_set: str) -> bool:
    from quantgate_kernels.registry import make_kernel_set
    from quantgate_kernels.unavailable import KernelSetUnavailableError

    try:
        make_kernel_set(kernel_set)
    except KernelSetUnavailableError:
        return False
    return True


def _probe(kernel_set: str, scheme_name: str) -> SchemePaths:
    import torch

    from quantgate_engine.quant.schemes import find_scheme
    from quantgate_kernels.registry import make_kernel_set
    from quantgate_kernels.types import DenseWeight, dtype_name

    scheme, kernels = find_scheme(scheme_name), make_kernel_set(kernel_set)
    precision = scheme.precision(torch.device("cpu"))
    with torch.inference_mode():
        # Any weight takes the same path: the choice goes by form and row count.
        values = torch.eye(PROBE_WIDTH)
        weight = kernels.stored_form(scheme.quantize(values, precision), precision.compute)
        head = DenseWeight(values.to(precision.storage))
        for rows in PROBE_ROWS:
            x = torch.ones(rows, PROBE_WIDTH, dtype=precision.compute)
            kernels.linear(x, weight)
            kernels.head(x, head)
            kernels.silu_and_mul(x)
            kernels.rms_norm(x, x[0], 1.0)
            _attend(kernels, rows, precision.compute)
    return SchemePaths(
        kernel_set, scheme_name, dtype_name(precision.storage), scheme.arithmetic(precision), dict(kernels.paths)
    )


def _attend(kernels: KernelSet, rows: int, dtype: torch.dtype) -> None:
    """One sequence with `rows` new tokens in one block, with one head."""
    import torch

    from quantgate_kernels.types import AttentionBatch, KVLayer

    head_dim = 64
    positions = torch.arange(rows)
    batch = AttentionBatch(
        query_starts=torch.tensor([0, rows], dtype=torch.int32),
        context_lens=torch.tensor([rows], dtype=torch.int32),
        block_tables=torch.zeros(1, 1, dtype=torch.int32),
        slots=positions,
        positions=positions,
        query_starts_host=(0, rows),
        context_lens_host=(rows,),
        block_size=rows,
    )
    cache = KVLayer(*(torch.zeros(1, rows, 1, head_dim, dtype=dtype) for _ in range(2)))
    turn = torch.zeros(rows, head_dim)
    queries = kernels.rope_and_write_kv(
        torch.ones(rows, 3 * head_dim, dtype=dtype), turn, turn, 1, 1, cache, batch.slots
    )
    kernels.attention(queries, cache, batch, scale=1.0)
