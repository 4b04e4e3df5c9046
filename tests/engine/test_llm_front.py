"""LLM and AsyncLLM over a tiny random Llama: prompts, outputs, and batching that changes nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.tiny_folder import save_tiny_folder
from tests.engine.tiny_model import TINY_SHAPE, save_tiny_model
from tests.engine.tiny_tokenizer import save_tiny_tokenizer

from quantgate_engine import LLM, AsyncLLM, EngineConfig, SamplingParams
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.executor.compute_thread import THREAD_NAME
from quantgate_engine.scheduler.admission.settings import AdmissionSettings

GREEDY = SamplingParams(max_tokens=12, ignore_eos=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("QUANTGATE_CACHE", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def llm(folder: Path) -> LLM:
    return LLM(folder, scheme="fp32", max_active_requests=4, max_step_tokens=24, block_size=4)


def _prompts() -> list[list[int]]:
    generator = torch.Generator().manual_seed(5)
    lengths = [1, 3, 4, 5, 23, 24, 25, 60, 7, 31]
    return [torch.randint(3, 257, (length,), generator=generator).tolist() for length in lengths]


def test_batched_greedy_outputs_equal_those_of_one_request_after_another(llm: LLM) -> None:
    together = [output.token_ids for output in llm.generate(_prompts(), GREEDY)]
    assert max(record.batch_size_decode for record in llm.take_steps()) == 4
    alone = [llm.generate([prompt], GREEDY)[0].token_ids for prompt in _prompts()]
    assert max(record.batch_size_decode for record in llm.take_steps()) == 1
    assert together == alone
    assert len(set(together)) > 5


def test_requests_that_choose_their_tokens_in_unlike_ways_share_steps_and_change_nothing(llm: LLM) -> None:
    kinds = [
        SamplingParams(max_tokens=9, ignore_eos=True, temperature=1.0, seed=3),
        SamplingParams(max_tokens=9, ignore_eos=True),
        SamplingParams(max_tokens=9, ignore_eos=True, logprobs=1),
        SamplingParams(max_tokens=9, forced_token_ids=(7, 8, 9, 10, 11, 12, 13, 14, 15)),
    ]
    prompts, params = _prompts()[:8], [*kinds, *reversed(kinds)]
    together = [output.token_ids for output in llm.generate(prompts, params)]
    assert together == [llm.generate([prompt], own)[0].token_ids for prompt, own in zip(prompts, params, strict=True)]
    assert together[3] == together[4] == kinds[3].forced_token_ids


def test_greedy_tokens_are_the_argmax_of_the_teacher_forced_logits(llm: LLM) -> None:
    for prompt in _prompts():
        [output] = llm.generate([prompt], GREEDY)
        logits = llm.logits([*prompt, *output.token_ids], chunk_tokens=7)
        predicted = logits.argmax(dim=-1)[len(prompt) - 1 : -1]
        assert tuple(predicted.tolist()) == output.token_ids


def test_every_kind_of_prompt_is_encoded_as_documented(llm: LLM) -> None:
    text, chat, ids = llm.generate(["w7 w8", [{"role": "user", "content": "w7 w8"}], [7, 8]], GREEDY)
    assert text.prompt_token_ids == (7, 8)
    assert chat.prompt_token_ids == (3, 7, 8, 4)
    assert ids.token_ids == text.token_ids != chat.token_ids
    [lone] = llm.generate("w7 w8", GREEDY)
    assert lone.token_ids == text.token_ids


def test_an_output_has_text_reason_log_probabilities_and_times_in_order(llm: LLM) -> None:
    [output] = llm.generate([[7, 8, 9]], SamplingParams(max_tokens=5, ignore_eos=True, logprobs=2))
    words = [{0: "<unk>", 1: "<s>", 2: "</s>"}.get(token, f"w{token}") for token in output.token_ids]
    assert output.text == " ".join(word for word in words if word.startswith("w"))
    assert output.finish_reason == "length"
    assert output.logprobs is not None
    assert [entry.token_id for entry in output.logprobs] == list(output.token_ids)
    expected = llm.logits([7, 8, 9, *output.token_ids]).log_softmax(-1)
    for position, entry in enumerate(output.logprobs, start=2):
        assert entry.logprob == pytest.approx(float(expected[position, entry.token_id]), abs=1e-4)
        assert len(entry.top_logprobs) == 2
    times = output.timing
    assert times.admitted_ns is not None
    assert times.first_token_ns is not None
    assert times.finished_ns is not None
    assert times.arrived_ns <= times.admitted_ns < times.first_token_ns < times.finished_ns


def test_the_token_that_stops_stands_in_the_ids_and_not_in_the_text(llm: LLM) -> None:
    [free] = llm.generate([[7, 8, 9]], GREEDY)
    stop = free.token_ids[3]
    [output] = llm.generate([[7, 8, 9]], SamplingParams(max_tokens=12, ignore_eos=True, stop_token_ids=(stop,)))
    cut = free.token_ids.index(stop)
    assert output.token_ids == free.token_ids[: cut + 1]
    assert output.finish_reason == "stop"
    assert output.text.split() == free.text.split()[: len(output.text.split())]
    assert f"w{stop}" not in output.text.split()


def test_parameters_may_differ_by_prompt_and_must_match_in_number(llm: LLM) -> None:
    short, long = llm.generate([[7, 8], [7, 8]], [SamplingParams(max_tokens=2, ignore_eos=True), GREEDY])
    assert (len(short.token_ids), len(long.token_ids)) == (2, 12)
    with pytest.raises(ConfigurationError, match="2 prompts and 1 SamplingParams"):
        llm.generate([[7], [8]], [GREEDY])


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([], "empty prompt"),
        ([5, 257], "expected 0 to 256"),
        ([5] * 501, "above the context limit of 512"),
        ([{"role": "user"}], "A prompt is a string"),
        ([1.5], "A prompt is a string"),
    ],
)
def test_a_prompt_that_cannot_run_is_refused_before_any_other_starts(llm: LLM, prompt: list[int], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        llm.generate([[7, 8], prompt], GREEDY)
    assert llm.take_steps() == []


@pytest.mark.parametrize(
    ("settings", "longest"),
    [
        ({}, 512),
        ({"max_context_tokens": 40}, 40),
        ({"num_kv_blocks": 6}, 25),
        ({"num_kv_blocks": 200}, 512),
        ({"admission": AdmissionSettings(max_kv_tokens=18)}, 17),
    ],
)
def test_the_longest_context_is_what_runs_and_one_more_does_not(
    folder: Path, settings: dict[str, Any], longest: int
) -> None:
    """By the model, the setting, the KV cache or its cap; a sequence's last token needs no room in the cache."""
    llm = LLM(folder, scheme="fp32", block_size=4, **settings)
    assert llm.max_context_tokens == longest
    [output] = llm.generate([[7] * (longest - 2)], SamplingParams(max_tokens=2, ignore_eos=True))
    assert len(output.token_ids) == 2
    with pytest.raises(ConfigurationError, match="can never run"):
        llm.generate([[7] * (longest - 2)], SamplingParams(max_tokens=3, ignore_eos=True))


def test_a_context_above_the_models_own_is_refused_with_both_numbers(folder: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        LLM(folder, scheme="fp32", max_context_tokens=9999)
    assert str(refused.value) == (
        "max_context_tokens is 9999; expected at most 512, the longest context of the model; lower it, or leave it out."
    )


def test_chat_without_a_template_is_refused_in_one_sentence(tmp_path: Path) -> None:
    save_tiny_model(tmp_path)
    save_tiny_tokenizer(tmp_path, TINY_SHAPE["vocab_size"], chat_template=None)
    with pytest.raises(ConfigurationError, match="no chat template"):
        LLM(tmp_path, scheme="fp32").generate([[{"role": "user", "content": "w7"}]], GREEDY)


def test_both_fronts_step_on_the_compute_thread(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    step, names = llm.core.step, []

    def watched() -> object:
        names.append(threading.current_thread().name)
        return step()

    monkeypatch.setattr(llm.core, "step", watched)
    llm.generate(_prompts(), GREEDY)
    generating = len(names)

    async def scenario() -> None:
        engine = AsyncLLM(llm)
        await engine.start()
        try:
            assert [chunk async for chunk in engine.stream("one", [7, 8], GREEDY)][-1].end is not None
        finally:
            await engine.stop()

    asyncio.run(scenario())
    assert generating > 12
    assert len(names) - generating >= 12
    assert all(name.startswith(THREAD_NAME) for name in names[: generating + 12])


def test_logits_come_while_requests_are_generated(llm: LLM) -> None:
    finished = threading.Event()

    def generate() -> None:
        llm.generate([[7, 8]], SamplingParams(max_tokens=400, ignore_eos=True))
        finished.set()

    generating = threading.Thread(target=generate)
    generating.start()
    while not llm.core.load.active_requests:
        time.sleep(0.001)
    expected_shape = (3, TINY_SHAPE["vocab_size"])
    assert llm.logits([7, 8, 9]).shape == expected_shape
    amid = not finished.is_set()
    generating.join()
    assert amid


def test_a_failing_kernel_is_a_run_error_with_its_message(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_sequences: object) -> object:
        raise ValueError("planted")

    monkeypatch.setattr(llm.core.executor, "execute", failing)
    with pytest.raises(RunError, match="ValueError: planted"):
        llm.generate(_prompts(), GREEDY)
    assert llm.core.held_blocks == 0


def test_streams_and_generate_agree_and_exclude_each_other(llm: LLM) -> None:
    expected = [output.token_ids for output in llm.generate(_prompts(), GREEDY)]

    async def read(engine: AsyncLLM, name: str, prompt: list[int]) -> tuple[int, ...]:
        return tuple([token async for chunk in engine.stream(name, prompt, GREEDY) for token in chunk.token_ids])

    async def scenario() -> list[tuple[int, ...]]:
        engine = AsyncLLM(llm)
        await engine.start()
        try:
            with pytest.raises(RunError, match="The engine is busy"):
                llm.generate([[7]], GREEDY)
            return await asyncio.gather(*(read(engine, f"r{i}", prompt) for i, prompt in enumerate(_prompts())))
        finally:
            await engine.stop()

    assert asyncio.run(scenario()) == expected
    assert [output.token_ids for output in llm.generate(_prompts(), GREEDY)] == expected


def test_settings_come_as_a_config_or_as_keywords_and_never_both(folder: Path) -> None:
    assert LLM(folder, "fp32", EngineConfig(block_size=8)).config.block_size == 8
    with pytest.raises(ConfigurationError, match="both a config and block_size"):
        LLM(folder, "fp32", EngineConfig(), block_size=8)
    with pytest.raises(ConfigurationError, match="not know max_actives; expected fields of EngineConfig: max_"):
        LLM(folder, "fp32", max_actives=8)


def test_importing_the_engine_loads_neither_torch_nor_transformers() -> None:
    code = "import sys, quantgate_engine; print(sorted({'torch', 'transformers', 'triton'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
