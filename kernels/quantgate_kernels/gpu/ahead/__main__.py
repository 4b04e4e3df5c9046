"""`python -m quantgate_kernels.gpu.ahead sm90`: compiles the catalogues, writes a line of JSON for each kernel."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from quantgate_kernels.gpu.ahead.catalogue import cases
from quantgate_kernels.gpu.ahead.inspection import inspect
from quantgate_kernels.gpu.ahead.linear_catalogue import linear_cases


def main(architecture: str) -> None:
    """A process for each processor: a kernel compiles on one alone. Forked, they need not import torch and Triton."""
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        for kernels in pool.map(partial(inspect, architecture=architecture), [*cases(), *linear_cases()]):
            for inspected in kernels:
                sys.stdout.write(json.dumps(dataclasses.asdict(inspected)) + "\n")


main(sys.argv[1])
