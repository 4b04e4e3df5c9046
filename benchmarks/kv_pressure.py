"""What too small a KV pool costs: who gives way, how, and how requests are let in.

    python benchmarks/kv_pressure.py --executor simulated --output benchmarks/results/kv-pressure-simulated.json
    python benchmarks/kv_pressure.py --executor torch --threads 2 --output benchmarks/results/kv-pressure-torch.json

The pool holds a quarter of what the busiest second's requests need in all. The script ends with an error where a
request does not finish. The recompute tax is the share of all computed tokens that a preemption had lost.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The modules beside this script are read as parts of `benchmarks`, by the tests too.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.practice_command import run
from benchmarks.practice_pressure import TABLES, TRAFFIC

if __name__ == "__main__":
    run(__doc__, TABLES, TRAFFIC)
