"""Loop bounds in the interpreter of Triton 3.6: with numpy 2.4 it makes no integer of an array of one number."""

from __future__ import annotations

from typing import Any

from triton.runtime import interpreter


def install() -> None:
    original = interpreter._patch_lang_tensor

    def patch(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))
        scope.set_attr(tensor, "__bool__", _truth)

    interpreter._patch_lang_tensor = patch


def _truth(tensor: Any) -> bool:
    """Of a block, as in the interpreter itself, always true: kernels test scalars alone."""
    data = tensor.handle.data
    return bool(data.reshape(-1)[0]) if data.size == 1 else True
