"""These tests run where `TRITON_INTERPRET=1` was set before Triton is imported, as `test_interpreted.py` does."""

from __future__ import annotations

import os

INTERPRETING = os.environ.get("TRITON_INTERPRET") == "1"

collect_ignore_glob = [] if INTERPRETING else ["test_*.py"]

if INTERPRETING:
    from tests.gpu.interpreter import bfloat16, bounds, products, scalars

    for repair in (products, bfloat16, scalars, bounds):
        repair.install()
