"""`python -m quantgate_kernels.gpu.ahead sm90 [KERNEL]`: compiles the catalogues, a line of JSON for each kernel.

KERNEL: a part of the names of the kernels that are wanted. What does not compile is a line with its `problem`, its
traceback on standard error, and exit code 1 in the end. After each case a line says how many are `done` of `all`.
Where files cannot be written or read, all ends with exit code 2, and the reason is the last line on standard error.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import traceback
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import triton

from quantgate_kernels.gpu.ahead.catalogue import Case, cases
from quantgate_kernels.gpu.ahead.inspection import Failed, Inspected, inspect
from quantgate_kernels.gpu.ahead.linear_catalogue import linear_cases


def main(architecture: str, kernel: str = "") -> int:
    """A process for each processor: a kernel compiles on one alone. Forked, they need not import torch and Triton."""
    failed = False
    every = [*cases(), *linear_cases()]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork"), initializer=_follow_parent) as pool:
        try:
            for done, kernels in enumerate(pool.map(partial(_inspect, architecture, kernel), every), start=1):
                for inspected in kernels:
                    failed |= isinstance(inspected, Failed)
                    _write(dataclasses.asdict(inspected))
                _write({"done": done, "all": len(every)})
        except OSError as error:
            sys.stderr.write(
                f"{error}; what is compiled goes to {triton.knobs.cache.dir} and through {tempfile.gettempdir()}, "
                "TRITON_CACHE_DIR and TMPDIR choose other folders\n"
            )
            return 2
        except KeyboardInterrupt:
            for worker in multiprocessing.active_children():
                worker.kill()
            return 128 + signal.SIGINT
    return int(failed)


def _follow_parent() -> None:
    """In a worker: an interrupt is the parent's alone to answer, and with it, however it ends, the worker ends.

    Ctrl-C reaches all processes. A worker that it ended while it held the lock of the pool's queue would leave the
    others waiting for ever.
    """

    def wait_for_its_end() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=wait_for_its_end, daemon=True).start()


def _inspect(architecture: str, kernel: str, case: Case) -> list[Inspected] | list[Failed]:
    try:
        return inspect(case, architecture, lambda name: kernel in name)
    except OSError:
        # Of the machine, not of the kernel: a full disk, or a folder that cannot be written.
        raise
    except Exception as error:  # noqa: BLE001 - whatever a compiler raises is this case's result; the others go on
        sys.stderr.write(f"{case.name}:\n{traceback.format_exc()}")
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        return [Failed(case.name, architecture, f"{type(error).__name__}: {first}".removesuffix(": "))]


def _write(document: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
