"""`python -m quantgate_kernels.gpu.ahead sm90`: compiles the catalogues, writes a line of JSON for each kernel."""

from __future__ import annotations

import dataclasses
import json
import sys
from itertools import chain

from quantgate_kernels.gpu.ahead.catalogue import cases
from quantgate_kernels.gpu.ahead.inspection import inspect
from quantgate_kernels.gpu.ahead.linear_catalogue import linear_cases


def main(architecture: str) -> None:
    for inspected in inspect(chain(cases(), linear_cases()), architecture):
        sys.stdout.write(json.dumps(dataclasses.asdict(inspected)) + "\n")


main(sys.argv[1])
