"""Where models and compiled kernels are cached on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """$QUANTGATE_CACHE, else $XDG_CACHE_HOME/quantgate, else ~/.cache/quantgate; read at every call."""
    own = os.environ.get("QUANTGATE_CACHE")
    if own:
        return with_home(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "quantgate"


def with_home(path: str | Path) -> Path:
    """The path with `~` and `~name` replaced; where nobody has that name it stays as it is, and is then not found."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
