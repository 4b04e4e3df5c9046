"""`python -m quantgate_kernels.gpu.ahead sm90`: compiles the catalogue, writes a line of JSON for each kernel."""

from __future__ import annotations

import dataclasses
import json
import sys

from quantgate_kernels.gpu.ahead.catalogue import cases
from quantgate_kernels.gpu.ahead.inspection import inspect


def main(architecture: str) -> None:
    for inspected in inspect(cases(), architecture):
        sys.stdout.write(json.dumps(dataclasses.asdict(inspected)) + "\n")


main(sys.argv[1])
