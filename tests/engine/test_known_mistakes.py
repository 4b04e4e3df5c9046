"""Mistakes that other engines made, by their tickets, which no other test of this area is about."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.engine.cached_engine import CachedEngine
from tests.engine.simulation import prompt

import quantgate_engine
from quantgate_engine.kv.prefix_cache import sha256
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request import RequestState
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings
from quantgate_engine.scheduler.preemption.victims import VICTIM_POLICIES

SHARING = CacheSettings(prefix_sharing=True)
OPTIMISTIC = AdmissionSettings(estimator="optimistic")
PACKAGE = Path(quantgate_engine.__file__).parent


@pytest.mark.parametrize("victim", VICTIM_POLICIES)
def test_the_only_request_in_a_pool_of_its_own_size_never_gives_way_to_itself(victim: str) -> None:
    """nano-vllm fails an assertion where the only sequence preempts itself."""
    engine = CachedEngine(num_blocks=8, admission=OPTIMISTIC, preemption=PreemptionSettings(victim=victim))
    engine.add("a", prompt(3), max_tokens=30)
    assert engine.run()["a"].preemptions == 0


def test_two_that_cannot_live_together_do_not_push_each_other_out_for_ever() -> None:
    """local-inference-lab/vllm#394: prefilled again and again, and never done."""
    engine = CachedEngine(num_blocks=8, admission=OPTIMISTIC, preemption=PreemptionSettings(victim="least-computed"))
    for i in range(2):
        engine.add(f"r{i}", prompt(8, i), max_tokens=25)
    ended = engine.run(max_steps=120)
    assert sum(request.preemptions for request in ended.values()) <= 3


def test_no_prompt_is_hashed_again_at_each_look_at_it() -> None:
    """nano-vllm hashes the whole prompt at every try to admit it."""
    hashed = 0

    def counting(data: bytes) -> bytes:
        nonlocal hashed
        hashed += 1
        return sha256(data)

    engine = CachedEngine(num_blocks=16, cache=SHARING, max_active_requests=2)
    engine.core._kv.prefixes._digest = counting
    engine.add("first", prompt(20), max_tokens=30)
    engine.add("waits", prompt(40, 300), max_tokens=4)
    engine.step(25)
    # Two roots, 5 blocks of the first prompt and 6 more of its answer, 10 of the one that waits.
    assert hashed <= 2 + 5 + 7 + 10
    assert engine.core.load.waiting_requests == 1


def test_requests_are_admitted_by_tokens_not_by_slots() -> None:
    """llama.cpp lets every slot promise the whole context; 565 + 1485 tokens in 2048 then end both
    (unsloth#9392). The same at a quarter of the size.
    """
    engine = CachedEngine(num_blocks=32, block_size=16, max_step_tokens=512)
    engine.add("a", prompt(141), max_tokens=20)
    engine.add("b", prompt(371), max_tokens=20)
    ended = engine.run()
    assert {request.state for request in ended.values()} == {RequestState.FINISHED}
    assert max(record.active_requests for record in engine.core.take_steps()) == 1


def test_a_flood_of_preempted_requests_leaves_room_for_new_ones_in_turn() -> None:
    """A preempted request that re-enters behind the new ones starves (vllm#41951), one that goes before all others
    starves them; here each keeps the place in which it arrived.
    """
    engine = CachedEngine(num_blocks=10, admission=OPTIMISTIC, max_active_requests=4)
    for i in range(10):
        engine.add(f"r{i}", prompt(8, i), max_tokens=12)
    ended = engine.run()
    order = sorted(ended.values(), key=lambda request: request.finished_ns or 0)
    places = [request.rank for request in order]
    assert all(abs(rank - place) <= 4 for place, rank in enumerate(places))


@pytest.mark.parametrize("room", ["scheduler", "kv"])
def test_scheduler_and_books_import_no_torch(room: str) -> None:
    """Plain Python: they, and everything of the engine that they import."""
    seen: set[Path] = set()
    pending = list((PACKAGE / room).rglob("*.py"))
    while pending:
        path = pending.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in _imported(path):
            assert name.partition(".")[0] not in {"torch", "triton", "numpy"}, path
            inside = PACKAGE.parent / Path(*name.split(".")).with_suffix(".py")
            if inside.exists():
                pending.append(inside)
    assert len(seen) > 10


def _imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
    return names
