"""What kernels and shapes are called in the document, where more than one module must agree on it."""

from __future__ import annotations

DECODE, PREFILL = "decode attention", "prefill attention"
KV_FORMS = {False: "float16 KV", True: "int8 KV"}
"""By whether keys and values are stored as codes. Shapes of attention end with it."""

W4A16, W8A16, W8A8 = "W4A16", "W8A16", "W8A8"
FEW_ROWS = (1, 2, 4, 8, 16)
"""Those of products where reading the weight is the cost."""


def shape_name(product: str, rows: int) -> str:
    return f"{product}, {rows} rows"
