"""Run as a script in the child: has Linux end it when quantgate dies, then becomes the server.

    child_start.py PARENT_PID COMMAND [ARGUMENT ...]

The wish to be told of the parent's death survives exec (prctl(2), PR_SET_PDEATHSIG). Setting it here and not between
fork and exec keeps Python code out of a forked copy of a process that has threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent_pid: int, command: list[str]) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != parent_pid:
        sys.exit("quantgate ended before the server was started")
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command is the user's own, and no shell reads it
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
