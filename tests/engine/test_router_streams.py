"""Streams over several pools: an AsyncLLM in all it does, and a real model whose weights the pools share."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.engine.async_engine import LIMIT_S, Gate, tokens_of
from tests.engine.pools import bulk, engine, fast
from tests.engine.simulation import RecordingExecutor, expected_tokens, prompt
from tests.engine.test_numerics_transformers import expected_logits, random_tokens
from tests.engine.tiny_folder import save_tiny_folder
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine import LLM, AsyncLLM, EngineConfig, SamplingParams
from quantgate_engine.clock import MonotonicClock, VirtualClock
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.outputs import StreamChunk
from quantgate_engine.request import AbortCause
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.router.over_model import pools_over
from quantgate_engine.router.pool import Pool
from quantgate_engine.router.router import Router
from quantgate_engine.router.settings import PoolRule, PoolSettings, TokenRange

URGENT, PATIENT = RequestTerms(slo_class="interactive"), RequestTerms(slo_class="batch")


def _simulated_router(*others: PoolSettings) -> tuple[Router, list[RecordingExecutor]]:
    clock = VirtualClock()
    settings = fast(), *others, bulk()
    executors = [RecordingExecutor(clock, num_blocks=64, block_size=4, eos_token_ids=()) for _ in settings]
    pools = [Pool.over(one, executor, clock) for one, executor in zip(settings, executors, strict=True)]
    return Router(pools), executors


async def _read(router: Router, name: str, length: int, max_tokens: int, terms: RequestTerms) -> list[StreamChunk]:
    params = SamplingParams(max_tokens=max_tokens)
    return [chunk async for chunk in router.stream(name, prompt(length), params, terms)]


def test_streams_of_all_pools_get_each_their_own_tokens_and_one_end() -> None:
    router, executors = _simulated_router()

    async def scenario() -> None:
        await router.start()
        reading = [_read(router, f"r{i}", 3 + 2 * i, 4 + i, (URGENT, PATIENT)[i % 2]) for i in range(8)]
        for i, chunks in enumerate(await asyncio.gather(*reading)):
            assert tokens_of(chunks) == expected_tokens(prompt(3 + 2 * i), 4 + i)
            assert [chunk.end is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
        await router.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    router.core.check_integrity()
    records = router.take_steps()
    assert {record.pool for record in records} == {"fast", "bulk"}
    assert sum(record.prefill_tokens for record in records) == sum(3 + 2 * i for i in range(8))
    assert all(executor.steps for executor in executors)
    assert router.num_kv_blocks == 128


def test_stop_ends_what_runs_in_every_pool_and_counts_it_once() -> None:
    router, executors = _simulated_router(bulk("long", rule=PoolRule(prompt_tokens=TokenRange(least=17))))
    gate = Gate()
    executors[0].hook = gate

    async def scenario() -> None:
        await router.start()
        readers = [
            asyncio.create_task(_read(router, f"r{i}", length, 100, terms))
            for i, (length, terms) in enumerate([(4, URGENT), (4, PATIENT), (20, PATIENT)] * 2)
        ]
        await gate.wait_entered()
        # The step that is held ends those of the first pool; each of the other two has a step of its own to come.
        stopping = asyncio.create_task(router.stop())
        await asyncio.sleep(0)
        gate.release()
        await stopping
        for reader in readers:
            end = (await reader)[-1].end
            assert end is not None
            assert (end.status, end.abort_cause) == ("aborted", "shutdown")
        with pytest.raises(RunError, match="not running"):
            await _read(router, "late", 4, 1, URGENT)

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    router.core.check_integrity()
    assert router.aborts_by_cause == {AbortCause.SHUTDOWN: 6}
    assert router.core.held_blocks == 0


def test_a_drain_lets_every_pool_come_to_its_end_and_the_router_starts_again() -> None:
    router, executors = _simulated_router()

    async def scenario() -> None:
        for _ in range(2):
            executors[0].hook = gate = Gate()
            await router.start()
            readers = [
                asyncio.create_task(_read(router, name, 4, 30, terms))
                for name, terms in (("u", URGENT), ("p", PATIENT))
            ]
            await gate.wait_entered()
            stopping = asyncio.create_task(router.stop(drain=True))
            await asyncio.sleep(0)
            gate.release()
            await stopping
            for reader in readers:
                assert tokens_of(await reader) == expected_tokens(prompt(4), 30)

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    assert router.aborts_by_cause == {}


def test_what_no_pool_takes_ends_as_rejected_and_leaves_early_as_a_disconnect() -> None:
    both, executors = _simulated_router()
    router = Router([both.pools[0]])
    executors[0].hook = gate = Gate(free_steps=1)

    async def scenario() -> None:
        await router.start()
        [chunk] = await _read(router, "long", 17, 4, URGENT)
        assert chunk.end is not None
        assert chunk.end.status == "rejected"
        assert "no pool takes class interactive with 17 prompt" in str(chunk.end.error)
        stream = router.stream("short", prompt(4), SamplingParams(max_tokens=200), URGENT)
        await anext(stream)
        await gate.wait_entered()
        await stream.aclose()
        gate.release()
        await router.stop(drain=True)

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    assert router.aborts_by_cause == {AbortCause.DISCONNECT: 1}


def test_pools_that_somebody_drives_are_nobody_elses() -> None:
    router, _ = _simulated_router()

    async def scenario() -> None:
        alone = AsyncLLM(router.pools[1].core)
        await alone.start()
        with pytest.raises(RunError, match="The engine is busy"):
            await router.start()
        await alone.stop()
        # Nothing is left claimed by the attempt.
        await router.start()
        await router.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def llm(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LLM:
    monkeypatch.setenv("QUANTGATE_CACHE", str(tmp_path / "cache"))
    return LLM(folder, scheme="fp32", config=_first().engine)


def _reference(**changes: Any) -> EngineConfig:
    return engine(**{"kernel_set": "reference", "max_context_tokens": None} | changes)


def _first() -> PoolSettings:
    return fast(engine=_reference())


def test_pools_over_one_model_share_its_weights_and_draw_what_transformers_draws(llm: LLM, tmp_path: Path) -> None:
    _, model = save_tiny_model(tmp_path / "same")
    router = Router(pools_over(llm, [_first(), bulk(engine=_reference(max_step_tokens=64))]))
    params = SamplingParams(max_tokens=10, ignore_eos=True)
    prompts = [tuple(random_tokens(5 + 4 * i, seed=i)) for i in range(8)]

    async def read(i: int) -> list[StreamChunk]:
        terms = (URGENT, PATIENT)[i % 2]
        return [chunk async for chunk in router.stream(f"r{i}", prompts[i], params, terms)]

    async def scenario() -> list[list[StreamChunk]]:
        await router.start()
        try:
            return await asyncio.gather(*(read(i) for i in range(8)))
        finally:
            await router.stop()

    streams = asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    for tokens, chunks in zip(prompts, streams, strict=True):
        drawn = list(tokens_of(chunks))
        expected = expected_logits(model, [*tokens, *drawn])
        assert drawn == expected[len(tokens) - 1 : -1].argmax(-1).tolist()
    assert {record.pool for record in router.take_steps()} == {"fast", "bulk"}
    first, second = (pool.core.executor._executor for pool in router.pools)  # type: ignore[attr-defined]
    assert second._decoder is first._decoder
    assert not {layer.keys.data_ptr() for layer in first._cache} & {layer.keys.data_ptr() for layer in second._cache}
    assert router.pools[0].core is llm.core
    assert router.pools[1].core.clock is llm.core.clock


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            [bulk()],
            "^The engine settings of the first pool, bulk, are not those that the model was loaded with .they differ "
            "in max_active_requests, max_step_tokens, max_context_tokens, kernel_set.; load it with the first pool's s",
        ),
        (
            [_first(), bulk(engine=_reference(kernel_set="cpu"))],
            "EngineConfig.kernel_set of pool bulk is 'cpu'; expected 'reference', as for the first pool",
        ),
        (
            [_first(), bulk(engine=_reference(max_context_tokens=1000))],
            "max_context_tokens of pool bulk is 1000; expected at most 512, the first pool's",
        ),
        ([_first(), fast()], "expected a name that no other pool has"),
    ],
)
def test_pools_that_one_loaded_model_cannot_serve_are_told(
    llm: LLM, settings: list[PoolSettings], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        pools_over(llm, settings)


def test_a_pool_that_names_no_longest_context_takes_that_of_the_model_as_it_was_loaded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUANTGATE_CACHE", str(tmp_path / "cache"))
    first = fast(engine=_reference(max_context_tokens=100))
    pools = pools_over(LLM(folder, scheme="fp32", config=first.engine), [first, bulk(engine=_reference())])
    assert [pool.core.caps.max_context_tokens for pool in pools] == [100, 100]


def test_a_first_pool_with_a_small_cache_does_not_shorten_the_contexts_of_the_others(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUANTGATE_CACHE", str(tmp_path / "cache"))
    first = fast(engine=_reference(num_kv_blocks=4, block_size=8))
    llm = LLM(folder, scheme="fp32", config=first.engine)
    pools = pools_over(llm, [first, bulk(engine=_reference(num_kv_blocks=200))])
    assert llm.max_context_tokens == 4 * 8 + 1
    assert [pool.core.max_sequence_tokens for pool in pools] == [4 * 8 + 1, 512]


def test_a_cache_that_memory_cannot_hold_is_told(llm: LLM) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^Pool bulk does not fit beside those before it\. The KV cache .* needs"
    ):
        pools_over(llm, [_first(), bulk(engine=_reference(num_kv_blocks=10**12))])


def test_engines_of_unlike_models_do_not_go_together() -> None:
    clock = MonotonicClock()
    executors = [RecordingExecutor(VirtualClock(), 64, 4, ()) for _ in range(2)]
    executors[1].vocab_size = 7
    pools = [Pool.over(one, executor, clock) for one, executor in zip((fast(), bulk()), executors, strict=True)]
    with pytest.raises(ConfigurationError, match="vocabularies of 7 and 1000 tokens; expected one model"):
        Router(pools)
