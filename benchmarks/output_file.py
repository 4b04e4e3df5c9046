"""Where a script's document goes: looked at before anything is measured, so that nothing is measured in vain."""

from __future__ import annotations

import argparse
from pathlib import Path


def output_file(text: str) -> Path:
    """An argument's type. Refuses what no file can be written to."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} was given where a file in a folder that exists was expected")
    return path
