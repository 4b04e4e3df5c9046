"""An engine that broke under one front is whole again under the next."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.engine.async_engine import LIMIT_S, read, run, tokens_of
from tests.engine.simulation import Simulation, expected_tokens, prompt
from tests.engine.tiny_model import TINY_SHAPE, save_tiny_model
from tests.engine.tiny_tokenizer import save_tiny_tokenizer

from quantgate_engine import LLM, SamplingParams
from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.errors import ConfigurationError


def _breaks(*_: object) -> None:
    raise KeyError("x")


def test_a_malformed_stream_is_refused_beside_one_that_goes_on() -> None:
    simulation = Simulation()

    async def scenario(engine: AsyncLLM) -> None:
        wrong: Any = ("a",)
        reader = asyncio.create_task(read(engine, "beside", 6, 20))
        with pytest.raises(ConfigurationError, match="'a'; expected a token id"):
            await anext(engine.stream("x", wrong, SamplingParams()))
        assert tokens_of(await reader) == expected_tokens(prompt(6), 20)
        assert engine.failure is None

    run(simulation, scenario)


def test_a_stream_engine_that_broke_serves_again_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation()
    monkeypatch.setattr(simulation.core._computation, "count", _breaks)

    async def scenario() -> None:
        engine = AsyncLLM(simulation.core)
        await engine.start()
        last = (await read(engine, "a", 6, 20))[-1]
        assert last.end is not None
        assert (last.end.status, last.end.error) == ("failed", "KeyError: 'x'")
        await engine.stop()
        for _ in range(2):
            await engine.start()
            assert tokens_of(await read(engine, "a", 6, 20)) == expected_tokens(prompt(6), 20)
            await engine.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    assert not simulation.core.has_work
    simulation.core.check_integrity()


def test_generate_works_again_after_a_call_that_broke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_tiny_model(tmp_path)
    save_tiny_tokenizer(tmp_path, TINY_SHAPE["vocab_size"])
    monkeypatch.setenv("QUANTGATE_CACHE", str(tmp_path / "cache"))
    llm = LLM(tmp_path, scheme="fp32", max_active_requests=4, max_step_tokens=24, num_kv_blocks=64)
    params = SamplingParams(max_tokens=4, ignore_eos=True)
    want = llm.generate([[3, 4, 5]], params)[0].token_ids
    monkeypatch.setattr(llm.core._computation, "count", _breaks)
    with pytest.raises(KeyError):
        llm.generate([[3, 4, 5]] * 2, params)
    assert llm.generate([[3, 4, 5]], params)[0].token_ids == want
