"""What each practice of the engine buys: one bursty replay, each practice on against off with all else equal.

    python benchmarks/practices.py --executor simulated --output benchmarks/results/practices-simulated.json
    python benchmarks/practices.py --executor torch --threads 2 --output benchmarks/results/practices-torch.json
    python benchmarks/practices.py --tables batching slo-classes --requests-per-s 12

`torch` replays on the bundled model in real time, `simulated` on step costs that were fitted to it (practice_costs.py),
in seconds. Every row of a table has the same requests at the same times; they differ in the one setting that the row is
named after. docs/practices.md says how to read the tables.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The modules beside this script are read as parts of `benchmarks`, by the tests too.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.practice_command import run
from benchmarks.practice_tables import TABLES
from benchmarks.practice_traffic import Traffic

if __name__ == "__main__":
    run(__doc__, TABLES, Traffic())
