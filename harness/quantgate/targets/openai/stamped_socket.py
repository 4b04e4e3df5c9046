"""A TCP socket that knows when its bytes reached this machine, not only when the process came to read them.

A client that is busy reads late, and would charge its own lateness to the server. Linux stamps each packet on arrival
(socket option SO_TIMESTAMPNS, socket(7); for TCP the stamp is that of the last packet of a read); elsewhere the time of
the read stands in.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

NowNs = Callable[[], int]

# Linux's number for both the option and its message (asm-generic/socket.h); Python's socket module does not name it.
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@ll")
_ANCILLARY_BYTES = socket.CMSG_SPACE(_TIMESPEC.size)
# Older than this is no age but a wall clock that was set in between.
_OLDEST_NS = 60_000_000_000


class StampedSocket(socket.socket):
    """`now_ns` is the driver's clock, `wall_ns` the wall clock, which the kernel stamps by."""

    def __init__(self, family: int, kind: int, protocol: int, *, now_ns: NowNs, wall_ns: NowNs) -> None:
        super().__init__(family, kind, protocol)
        self._now_ns = now_ns
        self._wall_ns = wall_ns
        self._first_unread_ns: int | None = None
        self._stamped = False
        if sys.platform == "linux":
            try:
                self.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
                self._stamped = True
            except OSError:
                pass  # A kernel or sandbox without the option: the time of the read stands in.

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        if not self._stamped:
            data = super().recv(bufsize, flags)
            self._note(0)
            return data
        data, ancillary, _, _ = self.recvmsg(bufsize, _ANCILLARY_BYTES, flags)
        self._note(self._age_ns(ancillary))
        return data

    def recv_into(self, buffer: WriteableBuffer, nbytes: int = 0, flags: int = 0) -> int:
        """Used under TLS."""
        if not self._stamped or nbytes:
            count = super().recv_into(buffer, nbytes, flags)
            self._note(0)
            return count
        count, ancillary, _, _ = self.recvmsg_into([buffer], _ANCILLARY_BYTES, flags)
        self._note(self._age_ns(ancillary))
        return count

    def take_arrival_ns(self) -> int | None:
        """When the first bytes arrived that were read since the last call; None where there were none."""
        arrived_ns, self._first_unread_ns = self._first_unread_ns, None
        return arrived_ns

    def _note(self, age_ns: int) -> None:
        if self._first_unread_ns is None:
            self._first_unread_ns = self._now_ns() - age_ns

    def _age_ns(self, ancillary: list[tuple[int, int, bytes]]) -> int:
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) == _TIMESPEC.size:
                seconds, nanoseconds = _TIMESPEC.unpack(data)
                age_ns = self._wall_ns() - (seconds * 1_000_000_000 + nanoseconds)
                return age_ns if 0 <= age_ns < _OLDEST_NS else 0
        return 0
