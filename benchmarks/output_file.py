"""Where a script's document goes: looked at before anything is measured, so that nothing is measured in vain."""

from __future__ import annotations

import argparse
from pathlib import Path


def output_file(text: str) -> Path:
    """An argument's type. Refuses what no file can be written to, which only trying tells; leaves none behind.

    A device is refused too: a script that writes beside its target and renames would put a file in its place.
    """
    path = Path(text)
    try:
        there = path.exists()
        if there and not (path.is_file() or path.is_dir()):
            raise argparse.ArgumentTypeError(f"{text!r} is a device or a pipe, where a file was expected")
        path.open("ab").close()
        if not there:
            path.unlink()
    except OSError as problem:
        raise argparse.ArgumentTypeError(
            f"{text!r} was given where a file that can be written was expected ({problem.strerror})"
        ) from problem
    return path
