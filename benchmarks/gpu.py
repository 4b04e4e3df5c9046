"""The Triton kernels on a GPU: are they right, how near do they come to their bounds, how fast is the engine with them.

    python benchmarks/gpu.py --output benchmarks/results/gpu.json     # under 8 minutes on one GPU
    python benchmarks/gpu.py --stages limits "time attention"         # some of it
    python benchmarks/gpu.py --dry-run --arch sm80                    # without one: laid out and compiled, not run

Shapes are those of Llama-3-8B. benchmarks/README.md says what the stages are and how to read the tables.
"""

from __future__ import annotations

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


def main() -> int:
    # Not at the top: the packages that it is found by are made above.
    from benchmarks.on_gpu.command import run

    return run(__doc__)


if __name__ == "__main__":
    sys.exit(main())
