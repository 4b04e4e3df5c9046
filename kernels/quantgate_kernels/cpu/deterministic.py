"""The `cpu` operations with products of a fixed order, and every query computed as decoding computes it."""

from __future__ import annotations

from torch import Tensor
from typing_extensions import override

from quantgate_kernels.cpu.fixed_order_products import PATH, FixedOrderProducts
from quantgate_kernels.cpu.operations import CpuOperations
from quantgate_kernels.reference.deterministic import DeterministicReferenceKernels
from quantgate_kernels.reference.lone_rows import as_decodes
from quantgate_kernels.types import AttentionBatch, DenseWeight, KVLayer, StoredWeight


class DeterministicCpuKernels(CpuOperations, DeterministicReferenceKernels):
    """Implements `KernelSet`: every row of every result depends on that row and its own context alone.

    Norm, rope and activation are those of `CpuOperations`, which compute each row on its own. Operands that the C++
    does not read take the path of `DeterministicReferenceKernels`, the next base class. Weights stay in plain forms.
    Raises KernelSetUnavailableError where the C++ can neither be found in the cache nor compiled.
    """

    name = "cpu-deterministic"

    def __init__(self) -> None:
        super().__init__()
        self._products = FixedOrderProducts(self._functions)
        self._decodes: tuple[AttentionBatch, AttentionBatch] | None = None

    @override
    def attention(
        self, q: Tensor, cache: KVLayer, batch: AttentionBatch, scale: float, window: int | None = None
    ) -> Tensor:
        """A row of a prefill reads its keys and values again, as its own decode would: slower, and the same bits."""
        return super().attention(q, cache, self._as_decodes(batch), scale, window)

    @override
    def linear(self, x: Tensor, weight: StoredWeight, bias: Tensor | None = None) -> Tensor:
        product = self._products.linear(x, weight)
        if product is None:
            return super().linear(x, weight, bias)
        self.paths[f"linear.{weight.label}"] = PATH
        return product if bias is None else product + bias

    @override
    def head(self, x: Tensor, weight: StoredWeight, *, exact: bool = False) -> Tensor:
        logits = self._products.logits(x, weight) if isinstance(weight, DenseWeight) else None
        if logits is None:
            return super().head(x, weight, exact=exact)
        self.paths["head"] = PATH
        return logits

    def _as_decodes(self, batch: AttentionBatch) -> AttentionBatch:
        """All layers of a step pass the same batch object; only the first of them has it expanded."""
        if self._decodes is None or self._decodes[0] is not batch:
            self._decodes = batch, as_decodes(batch)
        return self._decodes[1]
