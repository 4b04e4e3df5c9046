"""The command line's options; read before torch and Triton are, so that `--help` and a wrong one are told without."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from benchmarks.output_file import output_file

from quantgate_kernels.gpu.launch_table import ARCHITECTURES

USUAL_ARCHITECTURE = "sm90"


def parsed(description: str | None, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="lay out and compile everything, run nothing")
    parser.add_argument(
        "--arch", type=_architecture, help=f"which a dry run compiles for: {_known()}; else {USUAL_ARCHITECTURE}"
    )
    parser.add_argument("--stages", nargs="+", metavar="NAME", help="only those whose names begin so")
    parser.add_argument(
        "--budget-s", type=_seconds, default=480.0, metavar="SECONDS", help="stages that would pass it are skipped"
    )
    parser.add_argument(
        "--output", type=output_file, help="JSON, written after each stage; else it is printed at the end"
    )
    options = parser.parse_args(arguments)
    if options.arch is not None and not options.dry_run:
        parser.error("argument --arch: a GPU is compiled for as what it is; add --dry-run, or leave --arch out")
    options.arch = options.arch or USUAL_ARCHITECTURE
    return options


def _architecture(text: str) -> str:
    """`sm_90` is `sm90`. For one that it does not know, LLVM may end the whole process."""
    name = text.lower().replace("_", "")
    if name not in ARCHITECTURES:
        raise argparse.ArgumentTypeError(f"{text!r} was given where one of {_known()} was expected")
    return name


def _known() -> str:
    return ", ".join(ARCHITECTURES)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} was given where a number of seconds above 0 was expected")
    return number
