"""Keeps Python's garbage collector from stopping the driver.

A full collection looks at every object of the process, and nothing is sent meanwhile. A run has hundreds of thousands
before its first request (modules, the plan, tokenizers), and what was seen of the requests adds to them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Some ten objects each: a collection of what came since the last freeze takes a millisecond or two.
_KEPT_BETWEEN_FREEZES = 500


@contextmanager
def only_new_garbage() -> Iterator[Callable[[], None]]:
    """Within the block, collections look only at objects that were made since it began.

    Call what it yields whenever something is kept that stays to the end: from time to time that is left alone too, and
    with it what little garbage there is just then, which is collected after the block.
    """
    kept = 0

    def note_kept() -> None:
        nonlocal kept
        kept += 1
        if kept % _KEPT_BETWEEN_FREEZES == 0:
            gc.freeze()

    gc.freeze()
    try:
        yield note_kept
    finally:
        gc.unfreeze()
