"""bitsandbytes, imported when something first computes with it: takes seconds, and may not look at a network."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

HUB_PACKAGE = "kernels"


@cache
def bnb_functions() -> Any:
    """The module `bitsandbytes.functional`. Raises ImportError where bitsandbytes is not installed."""
    with _without_the_hub():
        from bitsandbytes import functional
    return functional


def bnb_operators() -> Any:
    """The operators of `torch.ops.bitsandbytes`."""
    bnb_functions()
    return torch.ops.bitsandbytes


@contextmanager
def _without_the_hub() -> Iterator[None]:
    """While it is imported on a CPU with bfloat16, bitsandbytes takes a product from Hugging Face's hub, if the package
    `kernels` is installed, and warns if it is not. An arm must compute the same whatever else is installed, and
    offline: bitsandbytes' own product it is.
    """
    logger, hub = logging.getLogger("bitsandbytes"), sys.modules.get(HUB_PACKAGE)
    level = logger.level
    logger.setLevel(logging.ERROR)
    # Python's own mark of a module that is not to be found.
    sys.modules[HUB_PACKAGE] = None  # type: ignore[assignment]  # the type of sys.modules leaves the mark out
    try:
        yield
    finally:
        del sys.modules[HUB_PACKAGE]
        if hub is not None:
            sys.modules[HUB_PACKAGE] = hub
        logger.setLevel(level)
