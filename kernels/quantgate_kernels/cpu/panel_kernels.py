"""The `cpu-panels` kernel set: 16-bit computation on weights in panels, all layers of a step in one call."""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import override

from quantgate_kernels.cpu.decoder_step import CpuStepProgram
from quantgate_kernels.cpu.kernels import CpuKernels
from quantgate_kernels.cpu.panel_products import PanelProducts
from quantgate_kernels.cpu.panels import pack
from quantgate_kernels.layers import DecoderShape, DecoderWeights, TableWeight
from quantgate_kernels.panel_weight import PanelWeight
from quantgate_kernels.step_program import StepProgram
from quantgate_kernels.types import DenseWeight, LinearWeight, StoredWeight

STEP_PATH = "cpp step program"


class PanelCpuKernels(CpuKernels):
    """Implements `KernelSet`. What is not computed in bfloat16 takes the paths of `CpuKernels`.

    Raises KernelSetUnavailableError where the C++ can neither be found in the cache nor compiled.
    """

    name = "cpu-panels"

    def __init__(self) -> None:
        super().__init__()
        self._products = PanelProducts(self._functions[torch.bfloat16])

    @override
    def stored_form(self, weight: LinearWeight, compute: torch.dtype, *, split: bool = False) -> StoredWeight:
        if compute != torch.bfloat16:
            return super().stored_form(weight, compute, split=split)
        return pack(weight, split=split)

    @override
    def stored_table(self, weight: DenseWeight, compute: torch.dtype) -> TableWeight:
        return pack(weight) if compute == torch.bfloat16 else weight

    @override
    def step_program(self, weights: DecoderWeights, shape: DecoderShape) -> StepProgram | None:
        functions = self._functions[torch.bfloat16].step
        if functions is None or weights.final_norm.dtype != torch.bfloat16:
            return None
        for label in sorted({projection.weight.label for projection in weights.projections()}):
            self.paths[f"linear.{label}"] = f"{STEP_PATH}, panels"
        for operation in ("rms_norm", "rope_and_write_kv", "attention", "silu_and_mul", "head"):
            self.paths[operation] = STEP_PATH
        return CpuStepProgram(functions, weights, shape)

    @override
    def linear(self, x: Tensor, weight: StoredWeight, bias: Tensor | None = None) -> Tensor:
        if not isinstance(weight, PanelWeight):
            return super().linear(x, weight, bias)
        self.paths[f"linear.{weight.label}"] = "cpp, panels"
        return self._products.linear(x, weight, bias)
