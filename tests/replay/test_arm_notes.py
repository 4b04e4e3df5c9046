"""What the replay showed of an arm stays in its manifest."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.replay.plans import answers

from quantgate.replay.arms import ReplayArm
from quantgate.run.arms import OpenedArms
from quantgate.targets.scripted import ScriptedTarget
from quantgate_engine.clock import VirtualClock


def test_notes_of_the_replay_are_in_every_later_manifest(tmp_path: Path) -> None:
    clock = VirtualClock()
    no_servers: Any = SimpleNamespace(servers={})
    target = ScriptedTarget(answers(1), clock, slots=1, arm_id="a")
    with asyncio.Runner() as runner:
        arms = OpenedArms({}, (ReplayArm("a", "baseline", target),), "a", no_servers, runner, clock, tmp_path)
        assert [manifest.notes for manifest in arms.manifests()] == [[]]
        arms.replay_notes.update({"a": ["1 of 2 requests were cut", "metrics could not be read"]})
        for _ in range(2):
            [manifest] = arms.manifests()
            assert list(manifest.notes) == ["1 of 2 requests were cut", "metrics could not be read"]
