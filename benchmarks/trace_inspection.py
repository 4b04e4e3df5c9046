"""How long `quantgate trace inspect` takes for a trace of millions of rows, and how much memory.

    python benchmarks/trace_inspection.py
    python benchmarks/trace_inspection.py --rows 1000000 --keep azure.csv

The file is made first, in a temporary folder unless `--keep` names a place, in the style of the Azure traces of 2024:
times with and without a fraction, 45 requests a second. Prints JSON: seconds of the whole command, its start included;
its peak memory as the operating system counts it; what it found.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = 10_000_000
ROWS_AT_A_TIME = 1_000_000
RATE_RPS = 45.0
BURSTINESS = 0.5
"""Shape of the gamma distribution of the gaps: a coefficient of variation of 1.4."""


def make_trace(path: Path, rows: int, seed: int) -> None:
    """Writes an Azure-shaped CSV of so many rows."""
    # Here and not above: the operating system counts what the parent held when it started the command as the command's.
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    draws = np.random.default_rng(seed)
    now_us = int(np.datetime64("2024-05-10T00:00:00", "us").astype(np.int64))
    with path.open("wb") as file:
        file.write(b"TIMESTAMP,ContextTokens,GeneratedTokens\n")
        for start in range(0, rows, ROWS_AT_A_TIME):
            count = min(ROWS_AT_A_TIME, rows - start)
            gaps_us = draws.gamma(BURSTINESS, 1e6 / (RATE_RPS * BURSTINESS), count)
            times_us = now_us + np.cumsum(gaps_us).astype(np.int64)
            # A whole second is written without a fraction: the first request of one in ten.
            seconds = times_us // 1_000_000
            first = np.diff(seconds, prepend=now_us // 1_000_000) > 0
            now_us = int(times_us[-1])
            times_us = np.where(first & (seconds % 10 == 0), seconds * 1_000_000, times_us)
            texts = pc.if_else(
                pa.array(times_us % 1_000_000 == 0),
                pc.cast(pa.array(seconds, pa.timestamp("s")), pa.string()),
                pc.cast(pa.array(times_us, pa.timestamp("us")), pa.string()),
            )
            inputs = np.clip(draws.lognormal(6.9, 1.0, count), 1, 130_000).astype(np.int64)
            outputs = np.clip(draws.lognormal(4.7, 1.0, count), 1, 4_000).astype(np.int64)
            lines = pc.binary_join_element_wise(
                pc.binary_join_element_wise(texts, "+00:00", ""),
                pc.cast(pa.array(inputs), pa.string()),
                pc.cast(pa.array(outputs), pa.string()),
                ",",
            )
            file.write(("\n".join(lines.to_pylist()) + "\n").encode())


def inspect(path: Path) -> dict[str, object]:
    """Runs the command on a file, alone."""
    command = [sys.executable, "-m", "quantgate", "trace", "inspect", str(path), "--json"]
    started_s = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as output:
        printed = output.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the command failed: {' '.join(command)}")
    # Linux counts in KiB, macOS in bytes.
    peak_bytes = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "seconds": round(seconds, 2),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_memory_mib": round(peak_bytes / 2**20, 1),
        "found": json.loads(printed),
    }


def measure(path: Path, rows: int, seed: int) -> dict[str, object]:
    """Makes the file unless it is there, and inspects it, each in a process of its own."""
    if not path.exists():
        make = [sys.executable, __file__, "--rows", str(rows), "--seed", str(seed), "--only-make", str(path)]
        subprocess.run(make, check=True)
    return {
        "file_mb": round(path.stat().st_size / 1e6, 1),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
    } | inspect(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where to make the file, or where it already is; it stays")
    parser.add_argument("--only-make", type=Path, help="make this file, inspect nothing")
    arguments = parser.parse_args()
    if arguments.only_make is not None:
        make_trace(arguments.only_make, arguments.rows, arguments.seed)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.keep or Path(folder) / "azure.csv"
        print(json.dumps(measure(path, arguments.rows, arguments.seed), indent=2))


if __name__ == "__main__":
    main()
