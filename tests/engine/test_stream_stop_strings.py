"""Stop strings in streams: a stream ends where `LLM.generate` does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.engine.async_engine import LIMIT_S
from tests.engine.byte_tokenizer import END, VOCABULARY, make_byte_tokenizer, save_byte_tokenizer
from tests.engine.simulation import Simulation
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine import LLM, AsyncLLM, SamplingParams
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.outputs import StreamChunk, StreamEnd
from quantgate_engine.text.stream_stop import StreamStop

PROMPTS = ([7, 8, 9, 120, 33], [90, 91], [100, 5, 6])
LONG = 200


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LLM]:
    root = tmp_path_factory.mktemp("stops")
    save_tiny_model(root / "tiny", vocab_size=VOCABULARY, eos_token_id=END, bos_token_id=None)
    save_byte_tokenizer(root / "tiny")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUANTGATE_CACHE", str(root / "cache"))
        yield LLM(root / "tiny", "fp32", max_active_requests=4, max_step_tokens=24, block_size=4)


def stream(llm: LLM, prompts: list[list[int]], params: list[SamplingParams]) -> list[list[StreamChunk]]:
    async def scenario() -> list[list[StreamChunk]]:
        engine = AsyncLLM(llm)

        async def read(number: int) -> list[StreamChunk]:
            return [chunk async for chunk in engine.stream(f"r{number}", prompts[number], params[number])]

        await engine.start()
        try:
            return await asyncio.gather(*(read(number) for number in range(len(prompts))))
        finally:
            await engine.stop()

    return asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


def stop_of(llm: LLM, prompt: list[int]) -> str:
    """Two printable bytes that follow each other in the free answer, not at its beginning."""
    [whole] = llm.generate([prompt], SamplingParams(max_tokens=60, ignore_eos=True))
    pairs = (bytes(pair) for pair in zip(whole.token_ids[3:], whole.token_ids[4:], strict=False) if max(pair) < 0x7F)
    return next(pair.decode() for pair in pairs if min(pair) >= 0x20)


def test_a_stream_ends_where_generate_does_and_the_engine_goes_no_further(llm: LLM) -> None:
    params = [
        SamplingParams(max_tokens=LONG, ignore_eos=True, stop=stop_of(llm, PROMPTS[0])),
        SamplingParams(max_tokens=20, ignore_eos=True, stop=("never comes",)),
        SamplingParams(max_tokens=20, ignore_eos=True),
    ]
    whole = llm.generate(PROMPTS, params)
    llm.take_steps()
    for chunks, expected in zip(stream(llm, [*PROMPTS], params), whole, strict=True):
        assert tuple(token for chunk in chunks for token in chunk.token_ids) == expected.token_ids
        end = chunks[-1].end
        assert end is not None
        assert (end.status, end.finish_reason) == ("finished", expected.finish_reason)
        assert [chunk.end for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert whole[0].finish_reason == "stop"
    assert len(llm.take_steps()) < LONG // 2
    assert llm.core.held_blocks == 0


def test_a_stop_string_that_the_last_allowed_token_completes_is_a_stop(llm: LLM) -> None:
    stop = stop_of(llm, PROMPTS[0])
    [cut] = llm.generate([PROMPTS[0]], SamplingParams(max_tokens=LONG, ignore_eos=True, stop=stop))
    last = SamplingParams(max_tokens=len(cut.token_ids), ignore_eos=True, stop=stop)
    [chunks] = stream(llm, [PROMPTS[0]], [last])
    assert chunks[-1].end is not None
    assert chunks[-1].end.finish_reason == "stop"


def test_a_stop_string_that_half_a_character_at_the_end_completes_is_a_stop(llm: LLM) -> None:
    half = SamplingParams(max_tokens=2, ignore_eos=True, logit_bias={0xC3: 100.0}, stop="\ufffd\ufffd")
    [whole] = llm.generate([PROMPTS[0]], half)
    [chunks] = stream(llm, [PROMPTS[0]], [half])
    assert chunks[-1].end is not None
    assert (whole.finish_reason, chunks[-1].end.finish_reason) == ("stop", "stop")


def test_an_engine_without_a_tokenizer_refuses_stop_strings_in_one_sentence() -> None:
    simulation = Simulation()

    async def scenario() -> None:
        engine = AsyncLLM(simulation.core)
        await engine.start()
        try:
            with pytest.raises(
                ConfigurationError, match=r"SamplingParams\.stop holds strings, and this engine knows to"
            ):
                await anext(engine.stream("a", [1, 2], SamplingParams(max_tokens=3, stop="x")))
            taken = [chunk async for chunk in engine.stream("a", [1, 2], SamplingParams(max_tokens=3))]
            assert len(taken) == 3
        finally:
            await engine.stop()

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


def test_what_was_drawn_after_the_stop_is_nobodys_and_the_end_says_how_the_request_ended() -> None:
    for end, reason in (
        (StreamEnd("finished", "length"), "stop"),
        (StreamEnd("aborted", abort_cause="timeout"), None),
    ):
        finished: list[int] = []
        reading = StreamStop(make_byte_tokenizer(), ("ab",), lambda finished=finished: finished.append(1))
        first, second = StreamChunk((ord("a"),)), StreamChunk((ord("b"),))
        assert reading.read(first) is first
        assert not finished
        assert reading.read(second) is second
        assert finished == [1]
        assert reading.read(StreamChunk((ord("c"),))) is None
        last = reading.read(StreamChunk((ord("d"),), end))
        assert last is not None
        assert last.end is not None
        assert (last.token_ids, last.end.status, last.end.finish_reason) == ((), end.status, reason)
    assert finished == [1]


def test_the_token_that_ends_a_request_by_itself_completes_no_stop_string() -> None:
    reading = StreamStop(make_byte_tokenizer(), ("ab",), lambda: None)
    reading.read(StreamChunk((ord("a"),)))
    ended = StreamChunk((ord("b"),), StreamEnd("finished", "stop"))
    assert reading.read(ended) is ended
