"""Products of rows with weights in panels, alone."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_kernels.cpu.library import Functions
from quantgate_kernels.cpu.panels import joined_halves, panel_bias
from quantgate_kernels.panel_weight import PANEL_OUTPUTS, PanelWeight


class PanelProducts:
    """functions: the compiled kernels for bfloat16 rows."""

    def __init__(self, functions: Functions) -> None:
        self._panel_linear = functions.panel_linear

    def linear(self, x: Tensor, weight: PanelWeight, bias: Tensor | None = None) -> Tensor:
        """x bfloat16 [T, in] -> bfloat16 [T, out], rounded once, after the bias [out]."""
        return self._multiply(x, weight, torch.bfloat16, bias)

    def logits(self, x: Tensor, weight: PanelWeight) -> Tensor:
        """x bfloat16 [T, in] -> float32 [T, out], not rounded."""
        return self._multiply(x, weight, torch.float32, None)

    def _multiply(self, x: Tensor, weight: PanelWeight, dtype: torch.dtype, bias: Tensor | None) -> Tensor:
        assert self._panel_linear is not None
        rows = x.contiguous()
        # Of a weight that is split, in the order of its panels, padding included.
        outputs = len(weight.data) * PANEL_OUTPUTS if weight.split else weight.outputs
        out = torch.empty((x.shape[0], outputs), dtype=dtype)
        # Held until the call returns: the kernel reads its memory.
        added = None if bias is None else panel_bias(bias, split=weight.split)
        self._panel_linear(
            int(weight.form), int(weight.has_half_scales), rows.data_ptr(), *weight.addresses(),
            None if added is None else added.data_ptr(), out.data_ptr(), int(dtype == torch.float32),
            *x.shape, outputs, weight.group_size, torch.get_num_threads(),
        )  # fmt: skip
        return joined_halves(out, weight.outputs) if weight.split else out
