"""Which implementation each operation of each kernel set takes here, found by computing a step's parts once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from quantgate_engine.quant.precision import Precision
    from quantgate_engine.quant.scheme import Scheme
    from quantgate_kernels.kernel_set import KernelSet
    from quantgate_kernels.layers import DecoderShape, DecoderWeights

PROBE_WIDTH = 256
HEAD_DIM = 64
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
    """For every scheme on every kernel set that this machine can run, but for those that need a missing package."""
    from quantgate_engine.quant.schemes import SCHEMES
    from quantgate_kernels.registry import KERNEL_SETS

    schemes = [scheme.name for scheme in SCHEMES.values() if scheme.missing() is None]
    return [_probe(kernel_set, scheme) for kernel_set in KERNEL_SETS if _runs(kernel_set) for scheme in schemes]


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
    from quantgate_kernels.layers import Angles
    from quantgate_kernels.registry import make_kernel_set
    from quantgate_kernels.types import dtype_name

    scheme, kernels = find_scheme(scheme_name), make_kernel_set(kernel_set)
    precision = scheme.precision(torch.device("cpu"), kernels)
    with torch.inference_mode():
        weights, shape = _one_layer(kernels, scheme, precision)
        # A set with a program for whole steps names the parts of it at once; the others compute part by part.
        if kernels.step_program(weights, shape, Angles(*torch.zeros(2, 1, HEAD_DIM))) is None:
            for rows in PROBE_ROWS:
                _compute_parts(kernels, weights, rows, precision.compute)
    return SchemePaths(
        kernel_set, scheme_name, dtype_name(precision.storage), scheme.arithmetic(precision), dict(kernels.paths)
    )


def _one_layer(kernels: KernelSet, scheme: Scheme, precision: Precision) -> tuple[DecoderWeights, DecoderShape]:
    """A decoder of one layer. Any weight takes the same path: the choice goes by form and row count."""
    import torch

    from quantgate_kernels.layers import DecoderLayer, DecoderShape, DecoderWeights, Projection
    from quantgate_kernels.types import DenseWeight

    values, norm = torch.eye(PROBE_WIDTH), torch.ones(PROBE_WIDTH, dtype=precision.compute)

    def projection(stacked: int, *, split: bool = False) -> Projection:
        quantized = scheme.quantize(values.repeat(stacked, 1), precision)
        return Projection(kernels.stored_form(quantized, precision.compute, split=split), bias=None)

    layer = DecoderLayer(
        attention_norm=norm,
        query_key_value=projection(3),
        head_norm=None,
        attention_output=projection(1),
        ffn_norm=norm,
        gate_up=projection(2, split=True),
        down=projection(1),
    )
    table = kernels.stored_table(DenseWeight(values.to(precision.storage)), precision.compute)
    heads = PROBE_WIDTH // HEAD_DIM
    shape = DecoderShape(PROBE_WIDTH, heads, heads, HEAD_DIM, PROBE_WIDTH, 1.0, 1.0, windows=(None,))
    return DecoderWeights(table, (layer,), norm, table), shape


def _compute_parts(kernels: KernelSet, weights: DecoderWeights, rows: int, dtype: torch.dtype) -> None:
    import torch

    x = torch.ones(rows, PROBE_WIDTH, dtype=dtype)
    kernels.linear(x, weights.layers[0].attention_output.weight)
    kernels.head(x, weights.head)
    kernels.silu_and_mul(x)
    kernels.rms_norm(x, x[0], 1.0)
    _attend(kernels, rows, dtype)


def _attend(kernels: KernelSet, rows: int, dtype: torch.dtype) -> None:
    """One sequence with `rows` new tokens in one block, with one head."""
    import torch

    from quantgate_kernels.types import AttentionBatch, KVLayer

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
    cache = KVLayer(*(torch.zeros(1, rows, 1, HEAD_DIM, dtype=dtype) for _ in range(2)))
    turn = torch.zeros(rows, HEAD_DIM)
    queries = kernels.rope_and_write_kv(
        torch.ones(rows, 3 * HEAD_DIM, dtype=dtype), turn, turn, 1, 1, cache, batch.slots
    )
    kernels.attention(queries, cache, batch, scale=1.0)
