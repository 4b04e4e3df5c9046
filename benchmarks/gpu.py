"""The Triton kernels on a GPU: are they right, how near do they come to their bounds, how fast is the engine with them.

    python benchmarks/gpu.py --output benchmarks/results/gpu.json     # under 8 minutes on one GPU
    python benchmarks/gpu.py --stages limits "time attention"         # some of it
    python benchmarks/gpu.py --dry-run --arch sm80                    # without one: laid out and compiled, not run

Shapes are those of Llama-3-8B. benchmarks/README.md says what the stages are and how to read the tables.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent

# Read as parts of these folders, by the tests too. Without a file of their own that says so, they are packages only
# where nothing else that is installed has their names.
for name in ("benchmarks", "tests"):
    package = ModuleType(name)
    package.__path__ = [str(ROOT / name)]
    sys.modules[name] = package


USAGE, INTERRUPTED = 2, 130


def main() -> int:
    """The exit code: that of `run`, 2 also where something is missing, 130 after Ctrl-C."""
    # In the interpreter nothing is compiled.
    os.environ.pop("TRITON_INTERPRET", None)
    try:
        # Not at the top: the packages that they are found by are made above.
        from benchmarks.on_gpu.options import parsed

        options = parsed(__doc__)
        from quantgate_kernels.gpu.device import require_triton
        from quantgate_kernels.unavailable import KernelSetUnavailableError

        try:
            require_triton()
        except KernelSetUnavailableError as unavailable:
            return _told(f"{unavailable}.", USAGE)
        from benchmarks.on_gpu.command import run

        return run(options)
    except ImportError as missing:
        return _told(f"{missing}; benchmarks/README.md says what this script needs and how it is called.", USAGE)
    except KeyboardInterrupt:
        return _told(
            "Interrupted; the file of --output, where one was given, has the stages that were done.", INTERRUPTED
        )


def _told(sentence: str, exit_code: int) -> int:
    print(sentence, file=sys.stderr)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
