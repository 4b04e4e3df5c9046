"""Real processes: a server comes up, is found ready, and goes away with all that it started, whatever happens."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.arm_life.tiny_server import ClockOfAServerThatListens, arm_server, free_port, is_listening, launch

from quantgate.arm_life.arm_server import ArmServer
from quantgate.arm_life.one_at_a_time import OneAtATime
from quantgate.arm_life.process_tree import is_alive
from quantgate_engine.errors import ConfigurationError, QuantgateError, RunError


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    assert psutil.Process().children(recursive=True) == []


def port_of(server: ArmServer) -> int:
    return int(server.endpoint.url.rpartition(":")[2])


def only_child() -> psutil.Process:
    (child,) = psutil.Process().children()
    return child


async def failure_of(server: ArmServer, kind: type[QuantgateError] = QuantgateError) -> str:
    with pytest.raises(kind) as caught:
        await server.bring_up()
    return str(caught.value)


def test_it_serves_when_it_is_up_and_is_gone_when_it_is_down(tmp_path: Path) -> None:
    log = tmp_path / "server.log"

    async def main() -> None:
        server = arm_server(launch(), log=log)
        assert (server.load_seconds, server.peak_memory_bytes, server.is_up) == (None, None, False)
        await server.bring_up()
        assert server.is_up
        assert is_listening(port_of(server))
        # A session of its own: Ctrl-C on our terminal is not for it.
        assert os.getsid(only_child().pid) == only_child().pid != os.getsid(0)
        await server.bring_up()
        assert len(psutil.Process().children()) == 1
        await server.take_down()
        assert not is_listening(port_of(server))
        assert server.load_seconds is not None
        assert server.load_seconds > 0
        assert server.peak_memory_bytes is not None
        assert 1_000_000 < server.peak_memory_bytes < 1_000_000_000
        await server.take_down()

    asyncio.run(main())
    assert log.read_text().startswith("loading with token None")


def test_it_outlives_the_event_loop_that_brought_it_up() -> None:
    server = arm_server(launch())
    asyncio.run(server.bring_up())
    assert is_listening(port_of(server))
    asyncio.run(server.take_down())


def test_one_that_ends_while_loading_is_told_with_its_code_and_last_words() -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9 10 11; do echo line $i; done; printf '\\033[31mno model'; exit 3"
    message = asyncio.run(failure_of(arm_server(launch(command=["sh", "-c", script]))))
    assert message == (
        "The server of arm int4 ended before it was ready (exit code 3; its last lines: line 3 | line 4 | line 5 | "
        "line 6 | line 7 | line 8 | line 9 | line 10 | line 11 | [31mno model); check "
        "launch.command (--launch-baseline, --launch-candidate)."
    )


def test_one_that_is_never_ready_is_told_and_stopped() -> None:
    message = asyncio.run(failure_of(arm_server(launch("loading", timeout_s=1.5), clock=ClockOfAServerThatListens)))
    assert re.match(
        r"The server of arm int4 was not ready 1\.5 s after its start: at http://127\.0\.0\.1:\d+, /health "
        r"answered with status 503 \(still running; its last lines: loading with token None\); check launch\.command",
        message,
    )


def test_secrets_of_the_environment_are_not_quoted() -> None:
    failing = launch("loading", environment={"TOKEN": "${SECRET}"})
    message = asyncio.run(failure_of(arm_server(failing, clock=ClockOfAServerThatListens)))
    assert "loading with token (hidden)" in message


def test_a_taken_port_is_told_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = int(other.getsockname()[1])
        marker = tmp_path / "started"
        message = asyncio.run(
            failure_of(arm_server(launch(command=["touch", str(marker)]), port=port), ConfigurationError)
        )
    assert message.startswith(f"Arm int4: something serves at http://127.0.0.1:{port} already")
    assert not marker.exists()


def test_a_refused_key_is_told_by_the_name_of_its_variable() -> None:
    message = asyncio.run(failure_of(arm_server(launch("key"))))
    assert "OPENAI_API_KEY" in message
    assert "/health" in message


def test_one_that_ignores_the_signal_is_killed_after_its_grace() -> None:
    async def main() -> None:
        server = arm_server(launch("deaf", grace_s=0.3))
        await server.bring_up()
        process = only_child()
        await server.take_down()
        assert not is_alive(process)

    asyncio.run(main())


@pytest.mark.parametrize("flags", [["child"], ["child", "deaf"]])
def test_what_it_started_goes_with_it(flags: list[str], tmp_path: Path) -> None:
    async def main() -> psutil.Process:
        server = arm_server(launch(*flags, grace_s=0.3), log=tmp_path / "log")
        await server.bring_up()
        (found,) = re.findall(r"child (\d+)", (tmp_path / "log").read_text())
        child = psutil.Process(int(found))
        await server.take_down()
        return child

    assert not is_alive(asyncio.run(main()))


def test_a_shell_in_between_does_not_keep_the_signal_from_the_server() -> None:
    async def main() -> None:
        words = [part.replace("'", "'\"'\"'") for part in launch().words]
        in_shell = launch(command=["sh", "-c", " ".join(f"'{word}'" for word in words) + "; true"], grace_s=60.0)
        server = arm_server(in_shell)
        await server.bring_up()
        processes = psutil.Process().children(recursive=True)
        assert len(processes) == 2
        # Well before the grace is over, or the test would take a minute.
        async with asyncio.timeout(30):
            await server.take_down()
        assert not any(map(is_alive, processes))

    asyncio.run(main())


def test_cancelling_the_wait_leaves_nothing_behind() -> None:
    async def main() -> None:
        server = arm_server(launch("loading"))
        bringing_up = asyncio.create_task(server.bring_up())
        while not is_listening(port_of(server)):
            await asyncio.sleep(0.02)
        bringing_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await bringing_up
        assert not is_listening(port_of(server))

    asyncio.run(main())


def test_its_death_is_told_with_its_last_lines_only_where_the_run_keeps_text(tmp_path: Path) -> None:
    async def last_words_of(server: ArmServer) -> str | None:
        await server.bring_up()
        assert await server.last_words() is None
        only_child().send_signal(signal.SIGKILL)
        try:
            return await server.last_words()
        finally:
            await server.take_down()

    log = tmp_path / "server.log"
    assert asyncio.run(last_words_of(arm_server(launch(), log=log))) == (
        "The server's process has ended (killed by SIGKILL, as Linux does when memory runs out; its last lines: "
        "loading with token None); all that it printed is in server.log."
    )
    assert asyncio.run(last_words_of(arm_server(launch()))) == (
        "The server's process has ended (killed by SIGKILL, as Linux does when memory runs out)."
    )


def test_one_that_died_is_brought_up_again(tmp_path: Path) -> None:
    async def main() -> None:
        server = arm_server(launch(), log=tmp_path / "log")
        await server.bring_up()
        only_child().send_signal(signal.SIGKILL)
        await server.last_words()
        await server.bring_up()
        assert is_listening(port_of(server))
        await server.take_down()

    asyncio.run(main())
    assert (tmp_path / "log").read_text().count("loading") == 2


def test_the_prefix_cache_is_reset_by_its_call(tmp_path: Path) -> None:
    async def main() -> str:
        server = arm_server(launch(reset_prefix_cache="POST /reset_prefix_cache"))
        await server.bring_up()
        for _ in range(3):
            await server.reset_prefix_cache()
        async with server.open_endpoint() as endpoint:
            text = await endpoint.get_text("/metrics")
        await server.take_down()
        return text

    assert asyncio.run(main()).splitlines()[-1] == "resets_total 3"


@pytest.mark.parametrize(
    ("path", "said"),
    [("/no_such_reset", "status 404"), ("/die", r"The server's process has ended \(killed by SIGKILL")],
)
def test_a_reset_that_fails_ends_the_run(path: str, said: str) -> None:
    async def main() -> None:
        server = arm_server(launch(reset_prefix_cache=f"POST {path}"))
        await server.bring_up()
        try:
            await server.reset_prefix_cache()
        finally:
            await server.take_down()

    with pytest.raises(RunError, match=rf"^Arm int4, field launch\.reset_prefix_cache: .*{said}"):
        asyncio.run(main())


def test_a_server_that_runs_already_is_found_and_left_alone() -> None:
    async def main() -> None:
        port = free_port()
        ours = arm_server(launch(), port=port)
        await ours.bring_up()
        theirs = arm_server(None, port=port)
        await theirs.bring_up()
        assert (theirs.is_launched, theirs.load_seconds, theirs.peak_memory_bytes) == (False, None, None)
        await theirs.take_down()
        assert is_listening(port)
        await ours.take_down()

    asyncio.run(main())


def test_a_server_that_should_run_already_and_does_not_is_told_at_once() -> None:
    missing = launch(command=None, timeout_s=0.2)
    message = asyncio.run(failure_of(arm_server(missing)))
    assert "nothing listens there" in message


def test_one_at_a_time_servers_may_share_an_address() -> None:
    async def main() -> None:
        port = free_port()
        host = OneAtATime({arm_id: arm_server(launch(), port=port) for arm_id in "ab"})
        for arm_id in "aba":
            await host.bring_up(arm_id)
            assert is_listening(port)
            assert len(psutil.Process().children()) == 1
        await host.close()
        assert not is_listening(port)
        assert [len(host.servers[arm_id].loads) for arm_id in "ab"] == [2, 1]

    asyncio.run(main())
