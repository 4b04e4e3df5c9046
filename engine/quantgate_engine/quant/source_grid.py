"""Whether a scheme that quantizes at load found weights that lay on its grid already.

Then it changed nothing but perhaps the rounding of scales, and a comparison with what was loaded says nothing of the
model that these weights were once made from.
"""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_engine.quant.precision import Precision
from quantgate_engine.quant.scheme import Scheme
from quantgate_kernels.reference.linear import dequantize
from quantgate_kernels.types import DenseWeight

_FIRST_ROWS = 2
_ROWS_AT_ONCE = 256
# Scales that are not rounded: a checkpoint's float16 scale is on the grid, whatever dtype products take.
_EXACT = Precision(storage=torch.float32, compute=torch.float32)


class SourceGrid:
    """Looks at each weight before it is quantized, until one is off the grid: of a model of floats, the first.

    reproduced: None where nothing was quantized so far; schemes that store floats quantize nothing.
    """

    def __init__(self) -> None:
        self.reproduced: bool | None = None

    def look(self, weight: Tensor, scheme: Scheme) -> None:
        """weight: float32 [out, in]. Where it is laid out on no memory, there are no numbers to look at."""
        if self.reproduced is False or weight.is_meta:
            return
        starts = (0, *range(_FIRST_ROWS, weight.shape[0], _ROWS_AT_ONCE))
        for start, stop in zip(starts, (*starts[1:], weight.shape[0]), strict=True):
            lies_on_it = _lies_on_grid(weight[start:stop], scheme)
            if lies_on_it is None:
                return
            self.reproduced = lies_on_it
            if not lies_on_it:
                return


def _lies_on_grid(rows: Tensor, scheme: Scheme) -> bool | None:
    """To the bit. None where the scheme stores floats."""
    quantized = scheme.quantize(rows, _EXACT)
    return None if isinstance(quantized, DenseWeight) else torch.equal(dequantize(quantized), rows)
