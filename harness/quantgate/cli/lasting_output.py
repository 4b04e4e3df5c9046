"""Standard output and error that outlive their reader: `quantgate gate RUN | head -1` still ends with the verdict.

A full disk under standard output is raised, once, and told; one under standard error could be told nowhere.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TextIO

from typing_extensions import Buffer, override


class _LastingFile(io.FileIO):
    """Drops what is written once nobody reads any more. The first other failure is raised if it `tells`; none after it:
    what is left in the buffers would raise it again.
    """

    def __init__(self, number: int, *, tells: bool) -> None:
        super().__init__(number, "w", closefd=False)
        self._tells = tells

    @override
    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError as failure:
            if self._tells and not isinstance(failure, BrokenPipeError):
                self._tells = False
                raise
            return memoryview(data).nbytes


@contextmanager
def lasting_output() -> Iterator[None]:
    """Inside the block a closed pipe is no error: a command's exit code tells what it found, not who listened."""
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(_lasting(sys.stdout, tells=True)))
        stack.enter_context(redirect_stderr(_lasting(sys.stderr, tells=False)))
        try:
            yield
        finally:
            for stream in (sys.stdout, sys.stderr):
                # What a command that went well had to say is written; of the others the failure was told.
                with suppress(OSError):
                    if stream is not None:
                        stream.flush()


def _lasting(stream: TextIO | None, *, tells: bool) -> TextIO | None:
    """A stream on the same file, with the same settings; one that has no file of its own is left alone."""
    try:
        number = stream.fileno() if isinstance(stream, io.TextIOWrapper) else None
    except io.UnsupportedOperation:
        number = None
    if number is None or not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    file = io.BufferedWriter(_LastingFile(number, tells=tells))
    return io.TextIOWrapper(
        file, stream.encoding, stream.errors, line_buffering=stream.line_buffering, write_through=stream.write_through
    )
