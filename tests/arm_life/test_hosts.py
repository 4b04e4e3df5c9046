"""In which order servers go up and down."""

from __future__ import annotations

import asyncio

import pytest
from tests.arm_life.recorded_server import Machine, RecordedServer

from quantgate.arm_life.one_at_a_time import OneAtATime
from quantgate.arm_life.side_by_side import SideBySide
from quantgate_engine.errors import ConfigurationError, RunError


def test_side_by_side_all_stay_up_until_the_end() -> None:
    machine = Machine()
    a, b = RecordedServer(machine, "a"), RecordedServer(machine, "b")

    async def main() -> None:
        host = SideBySide({"a": a, "b": b, "a-aa": a})
        for arm_id in ("a", "b", "a-aa", "b", "a"):
            await host.bring_up(arm_id)
        assert machine.up == {"a", "b"}
        await host.close()
        await host.close()

    asyncio.run(main())
    assert machine.events[:2] == ["+a", "+b"]
    assert sorted(machine.events[2:]) == ["-a", "-b"]


def test_side_by_side_takes_all_down_even_if_one_refuses() -> None:
    machine = Machine()

    class Stubborn(RecordedServer):
        async def take_down(self) -> None:
            raise RunError("it would not go")

    a, b = Stubborn(machine, "a"), RecordedServer(machine, "b")

    async def main() -> None:
        host = SideBySide({"a": a, "b": b})
        await host.bring_up("a")
        await host.bring_up("b")
        await host.close()

    with pytest.raises(RunError, match="it would not go"):
        asyncio.run(main())
    assert machine.up == {"a"}


def test_one_at_a_time_the_next_comes_up_when_the_last_is_down() -> None:
    machine = Machine()
    servers = {arm_id: RecordedServer(machine, arm_id) for arm_id in "ab"}

    async def main() -> None:
        host = OneAtATime(servers)
        for arm_id in ("a", "b", "b", "a"):
            await host.bring_up(arm_id)
            assert machine.up == {arm_id}
        await host.close()
        await host.close()

    asyncio.run(main())
    assert machine.events == ["+a", "-a", "+b", "-b", "+a", "-a"]


def test_one_at_a_time_the_aa_arm_is_started_afresh_like_any_other() -> None:
    machine = Machine()
    a = RecordedServer(machine, "a")

    async def main() -> None:
        host = OneAtATime({"a": a, "a-aa": a})
        for arm_id in ("a", "a-aa", "a-aa"):
            await host.bring_up(arm_id)

    asyncio.run(main())
    assert machine.events == ["+a", "-a", "+a"]


def test_one_that_died_in_its_turn_comes_up_again() -> None:
    machine = Machine()

    async def main() -> None:
        host = OneAtATime({"a": RecordedServer(machine, "a")})
        await host.bring_up("a")
        machine.up.clear()
        await host.bring_up("a")

    asyncio.run(main())
    assert machine.events == ["+a", "+a"]


def test_a_failed_start_leaves_the_host_able_to_go_on() -> None:
    machine = Machine()
    a, b = RecordedServer(machine, "a"), RecordedServer(machine, "b", fails=True)

    async def main() -> None:
        host = OneAtATime({"a": a, "b": b})
        await host.bring_up("a")
        with pytest.raises(RunError):
            await host.bring_up("b")
        await host.bring_up("a")
        await host.close()

    asyncio.run(main())
    assert machine.events == ["+a", "-a", "+a", "-a"]


def test_one_at_a_time_needs_a_command_for_every_arm() -> None:
    machine = Machine()
    with pytest.raises(ConfigurationError, match=r"^Arm b has no launch\.command"):
        OneAtATime({"a": RecordedServer(machine, "a"), "b": RecordedServer(machine, "b", launched=False)})


def test_two_launched_servers_need_two_addresses() -> None:
    machine = Machine()
    a, b = RecordedServer(machine, "a", port=8000), RecordedServer(machine, "b", port=8000)
    with pytest.raises(ConfigurationError, match=r"^Arms a and b both launch a server at http://localhost:8000"):
        SideBySide({"a": a, "b": b})
    assert SideBySide({"a": a, "a-aa": a}).servers["a-aa"] is a
    running = RecordedServer(machine, "c", port=8000, launched=False)
    assert not SideBySide({"a": a, "c": running}).exclusive
