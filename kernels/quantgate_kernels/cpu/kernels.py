"""The `cpu` kernel set: 16-bit computation by C++ alone, on weights in panels, all layers of a step in one call.

A decode step of a small model is hundreds of operations on a few thousand numbers each: called one by one, they cost
more in calls and passes over memory than in arithmetic.
"""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import override

from quantgate_kernels.cpu.decoder_step import CpuStepProgram
from quantgate_kernels.cpu.operations import CpuOperations
from quantgate_kernels.cpu.panel_products import PanelProducts
from quantgate_kernels.cpu.panels import has_panels, pack, rows_of_panels
from quantgate_kernels.layers import Angles, DecoderShape, DecoderWeights, Projection, TableWeight
from quantgate_kernels.panel_weight import PanelWeight
from quantgate_kernels.step_program import StepProgram
from quantgate_kernels.types import DenseWeight, LinearWeight, ReorderedWeight, StoredWeight

STEP_PATH = "cpp step program"
PANEL_PATH = "cpp, panels"


class CpuKernels(CpuOperations):
    """Implements `KernelSet` for tensors on the CPU.

    What is not computed in bfloat16, as on processors without AVX2 and on older ones of Arm's, keeps the reference's
    forms of weights and its products.
    Raises KernelSetUnavailableError where the C++ can neither be found in the cache nor compiled.
    """

    name = "cpu"

    def __init__(self) -> None:
        super().__init__()
        self._products = PanelProducts(self._functions[torch.bfloat16])

    @override
    def stored_form(self, weight: LinearWeight, compute: torch.dtype, *, split: bool = False) -> StoredWeight:
        if compute != torch.bfloat16 or not has_panels(weight):
            return super().stored_form(weight, compute, split=split)
        return pack(weight, split=split)

    @override
    def stored_table(self, weight: DenseWeight, compute: torch.dtype) -> TableWeight:
        return pack(weight) if compute == torch.bfloat16 else weight

    @override
    def embed(self, token_ids: Tensor, table: TableWeight, compute: torch.dtype) -> Tensor:
        if not isinstance(table, PanelWeight):
            return super().embed(token_ids, table, compute)
        return rows_of_panels(table, token_ids).to(compute)

    @override
    def step_program(self, weights: DecoderWeights, shape: DecoderShape, angles: Angles) -> StepProgram | None:
        functions = self._functions[torch.bfloat16].step
        in_panels = isinstance(weights.head, PanelWeight) and all(map(_in_panels, weights.projections()))
        if functions is None or not in_panels or weights.final_norm.dtype != torch.bfloat16:
            return None
        for label in sorted({projection.weight.label for projection in weights.projections()}):
            self.paths[f"linear.{label}"] = f"{STEP_PATH}, panels"
        for operation in ("rms_norm", "rope_and_write_kv", "attention", "silu_and_mul", "head"):
            self.paths[operation] = STEP_PATH
        if any(isinstance(projection.weight, ReorderedWeight) for projection in weights.projections()):
            self.paths["reorder_inputs"] = STEP_PATH
        return CpuStepProgram(functions, weights, shape, angles)

    @override
    def linear(self, x: Tensor, weight: StoredWeight, bias: Tensor | None = None) -> Tensor:
        if not isinstance(weight, PanelWeight):
            return super().linear(x, weight, bias)
        self.paths[f"linear.{weight.label}"] = PANEL_PATH
        return self._products.linear(x, weight, bias)

    @override
    def head(self, x: Tensor, weight: StoredWeight, *, exact: bool = False) -> Tensor:
        """Panels give every logit in float32, whether that is asked for or not."""
        if not isinstance(weight, PanelWeight):
            return super().head(x, weight, exact=exact)
        self.paths["head"] = PANEL_PATH
        return self._products.logits(x, weight)


def _in_panels(projection: Projection) -> bool:
    weight = projection.weight
    return isinstance(weight.weight if isinstance(weight, ReorderedWeight) else weight, PanelWeight)
