"""Products of matrices in the interpreter: as on a GPU, a row's numbers do not depend on where in the matrix it stands.

BLAS computes the rows at the edges of a matrix by other code, which sums in another order. In float64 the order leaves
no trace in what is rounded to float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton.runtime import interpreter

Builder = interpreter.InterpreterBuilder


def install() -> None:
    Builder.create_dot = _dot(Builder.create_dot)


def _dot(original: Callable) -> Callable:
    def dot(self: Any, left: Any, right: Any, added: Any, *others: Any) -> Any:
        if added.data.dtype != np.float32 or not left.data.dtype.kind == right.data.dtype.kind == "f":
            return original(self, left, right, added, *others)
        product = np.matmul(left.data.astype(np.float64), right.data.astype(np.float64))
        return interpreter.TensorHandle(product.astype(np.float32) + added.data, added.dtype.scalar)

    return dot
