"""Products of many rows with INT4 weights: expanded to 16 bits in one reused buffer, then multiplied densely.

A fresh 16-bit copy per product would cost more in page faults and passes over memory than the product itself; one
buffer of the largest layer's size stays in the processor's cache, and the matrix product reads it from there.
"""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_kernels.cpu.library import Functions
from quantgate_kernels.types import Int4TiledWeight, StoredWeight

# Up to so many rows torch's fused product is as fast. Microseconds on 2 cores of an AVX512-BF16 CPU for 32, 48, 64,
# 128 and 256 rows, reference -> expanded:
#   3072 x 576   679 -> 711   1007 -> 839   1233 -> 960   1889 -> 1495   3878 -> 2575
#   576 x 1536   340 -> 383    501 -> 529    684 -> 530    956 ->  783   1722 -> 1287
# INT8 gains nothing this way.
FUSED_ROWS = 40


class ExpandedProducts:
    """Holds the buffer; not thread-safe, like the kernel set that owns it."""

    def __init__(self, functions: Functions) -> None:
        self._expand_int4 = functions.expand_int4
        self._buffer = torch.empty(0, dtype=torch.bfloat16)

    def multiply(self, x: Tensor, weight: StoredWeight, paths: dict[str, str]) -> Tensor | None:
        """x [T, in] -> [T, out]; None where another path is faster, or the operands are not what is read here."""
        reads = isinstance(weight, Int4TiledWeight) and x.dtype == torch.bfloat16 and x.shape[0] > FUSED_ROWS
        if not reads or self._expand_int4 is None:
            return None
        assert isinstance(weight, Int4TiledWeight)
        paths[f"linear.{weight.label}"] = "tiles to 16 bits in a reused buffer by cpp, torch.mm"
        outputs, inputs = weight.shape
        if self._buffer.numel() < inputs * outputs:
            self._buffer = torch.empty(inputs * outputs, dtype=torch.bfloat16)
        expanded = self._buffer[: inputs * outputs].view(inputs, outputs)
        self._expand_int4(
            weight.tiles.data_ptr(), weight.scales_and_zeros.data_ptr(), expanded.data_ptr(),
            outputs, inputs, weight.group_size, torch.get_num_threads(),
        )  # fmt: skip
        return torch.mm(x, expanded)
