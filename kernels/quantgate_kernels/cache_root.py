"""Where models and compiled kernels are cached on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """$QUANTGATE_CACHE, else $XDG_CACHE_HOME/quantgate, else ~/.cache/quantgate; read at every call."""
    own = os.environ.get("QUANTGATE_CACHE")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "quantgate"
