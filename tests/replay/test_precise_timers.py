"""The event loop with fine timers does what any event loop does."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any

import pytest

from quantgate.replay import precise_timers
from quantgate.replay.precise_timers import precise_loop


def run(main: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        return runner.run(main)


async def exchange() -> list[bytes]:
    """Timers in order, and data that arrives while a timer is set."""
    order: list[bytes] = []
    near, far = socket.socketpair()
    near.settimeout(0)
    far.settimeout(0)
    loop = asyncio.get_running_loop()
    loop.call_later(0.003, order.append, b"third")
    loop.call_later(0.001, order.append, b"second")
    loop.call_soon(order.append, b"first")
    loop.call_later(0.005, far.send, b"hello")
    async with asyncio.timeout(60):
        order.append(await loop.sock_recv(near, 100))
    near.close()
    far.close()
    return order


def test_timers_and_sockets() -> None:
    assert run(exchange()) == [b"first", b"second", b"third", b"hello"]


def test_a_descriptor_that_select_does_not_know_is_waited_for_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precise_timers, "_DESCRIPTORS", 0)
    assert run(exchange()) == [b"first", b"second", b"third", b"hello"]


async def woken_from_a_thread() -> str:
    return await asyncio.get_running_loop().run_in_executor(None, lambda: "done")


def test_other_threads_wake_it() -> None:
    assert run(woken_from_a_thread()) == "done"
