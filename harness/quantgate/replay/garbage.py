"""Keeps Python's garbage collector from stopping the driver.

A full collection looks at every object of the process, and nothing is sent meanwhile. A run has hundreds of thousands
before its first request: modules, the plan, tokenizers.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def only_new_garbage() -> Iterator[None]:
    """Within the block, collections look only at objects that were made since it began."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
