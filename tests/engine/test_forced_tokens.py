"""Continuations that are given, scores of given tokens, and stop strings, on a tiny random model."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.byte_tokenizer import END, VOCABULARY, save_byte_tokenizer
from tests.engine.simulation import Simulation, prompt
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine import LLM, SamplingParams
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.sampling.seeds import derived_seed
from quantgate_engine.shown import shown

PROMPT = [7, 8, 9, 120, 33]
FORCED = (40, END, 41, 200, END, 42)


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory) -> LLM:
    root = tmp_path_factory.mktemp("forced")
    save_tiny_model(root / "tiny", vocab_size=VOCABULARY, eos_token_id=END, bos_token_id=None)
    save_byte_tokenizer(root / "tiny")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUANTGATE_CACHE", str(root / "cache"))
        return LLM(root / "tiny", "fp32", max_active_requests=4, max_step_tokens=24, block_size=4)


def test_forced_tokens_are_decoded_as_given_with_the_models_own_log_probabilities(llm: LLM) -> None:
    """Among free requests in one batch; end tokens in the middle stop nothing."""
    forced = SamplingParams(max_tokens=len(FORCED), forced_token_ids=FORCED, logprobs=3)
    free = SamplingParams(max_tokens=9, ignore_eos=True)
    outputs = llm.generate([PROMPT, PROMPT, [5, 6]], [free, forced, free])
    assert outputs[1].token_ids == FORCED
    assert outputs[1].finish_reason == "length"
    assert outputs[1].logprobs is not None
    expected = llm.logits([*PROMPT, *FORCED]).log_softmax(-1)[len(PROMPT) - 1 : -1]
    for row, token_id, entry in zip(expected, FORCED, outputs[1].logprobs, strict=True):
        assert entry.token_id == token_id
        assert entry.logprob == pytest.approx(float(row[token_id]), abs=1e-4)
        assert [alternative for alternative, _ in entry.top_logprobs] == row.topk(3).indices.tolist()
    assert outputs[0].token_ids == llm.generate([PROMPT], free)[0].token_ids


def test_scores_are_those_of_the_logits_whatever_the_chunks(llm: LLM) -> None:
    """49 tokens are three chunks of the step budget, the last of a token that nothing follows."""
    token_ids = [3 + (7 * index) % 250 for index in range(49)]
    logprobs = llm.logits(token_ids).log_softmax(-1)
    scores = llm.token_scores(token_ids, 2)
    assert [score.token_id for score in scores] == token_ids[1:]
    for row, score in zip(logprobs, scores, strict=False):
        own = row[score.token_id]
        assert score.logprob == pytest.approx(float(own), abs=1e-4)
        assert score.rank == int((row > own).sum()) + 1
        assert [token for token, _ in score.top_logprobs] == row.topk(2).indices.tolist()
    assert llm.token_scores(token_ids[:1], 2) == []


def test_the_likeliest_token_has_rank_one(llm: LLM) -> None:
    best = int(llm.logits(PROMPT)[-1].argmax())
    assert llm.token_scores([*PROMPT, best])[-1].rank == 1


def test_rows_that_want_probabilities_do_not_change_those_that_do_not(llm: LLM) -> None:
    drawn = SamplingParams(max_tokens=8, temperature=1.0, seed=4, ignore_eos=True)
    told = SamplingParams(max_tokens=8, temperature=1.0, seed=4, ignore_eos=True, logprobs=0)
    alone, with_told, itself_told = (
        llm.generate([PROMPT], drawn)[0], *llm.generate([PROMPT, PROMPT], [drawn, told])
    )  # fmt: skip
    assert alone.token_ids == with_told.token_ids == itself_told.token_ids


def test_generate_cuts_at_a_stop_string_that_lies_across_tokens(llm: LLM) -> None:
    free = SamplingParams(max_tokens=40, ignore_eos=True)
    [whole] = llm.generate([PROMPT], free)
    plain = [
        index for index in range(3, 38) if all(0x20 < token < 0x7F for token in whole.token_ids[index : index + 2])
    ]
    assert plain, "the random model writes two printable bytes in a row somewhere"
    stop = bytes(whole.token_ids[plain[0] : plain[0] + 2]).decode()
    [cut] = llm.generate([PROMPT], SamplingParams(max_tokens=40, ignore_eos=True, stop=(stop,)))
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish_reason == "stop"
    assert len(cut.token_ids) < 40
    assert cut.token_ids == whole.token_ids[: len(cut.token_ids)]
    assert llm.core.held_blocks == 0


def test_a_stop_string_that_never_comes_changes_nothing(llm: LLM) -> None:
    free = SamplingParams(max_tokens=12, ignore_eos=True)
    [whole] = llm.generate([PROMPT], free)
    [watched] = llm.generate([PROMPT], SamplingParams(max_tokens=12, ignore_eos=True, stop=("never comes",)))
    assert (watched.text, watched.finish_reason) == (whole.text, "length")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_tokens": 3, "forced_token_ids": (1, 2)}, r"forced_token_ids is \(1, 2\); expected none, or max_tokens"),
        ({"max_tokens": 1, "forced_token_ids": (1,), "stop": ("a",)}, "stop is .*none beside forced_token_ids"),
        ({"stop": ("",)}, "stop is .*no empty string"),
        ({"min_p": 1.5}, "min_p is 1.5; expected 0"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SamplingParams(**settings)


@pytest.mark.parametrize("token_id", [VOCABULARY, -1, 10**5000], ids=["next", "negative", "endless"])
@pytest.mark.parametrize("field", ["forced_token_ids", "stop_token_ids", "logit_bias"])
def test_a_token_that_the_model_does_not_have_is_refused(llm: LLM, field: str, token_id: int) -> None:
    params: dict[str, Any] = {field: {token_id: 1.0} if field == "logit_bias" else (token_id,)}
    written = shown(token_id)
    llm.take_steps()
    with pytest.raises(ConfigurationError, match=f"has token ids from {written} to {written} in {field}; expected 0 t"):
        llm.generate([PROMPT], SamplingParams(max_tokens=1, **params))
    assert llm.take_steps() == []


def test_the_last_token_of_the_vocabulary_may_stop(llm: LLM) -> None:
    [output] = llm.generate([PROMPT], SamplingParams(max_tokens=2, stop_token_ids=(0, VOCABULARY - 1)))
    assert output.token_ids


def test_the_simulator_follows_forced_tokens_through_chunks_and_batches() -> None:
    simulation = Simulation(eos_token_ids=(2,))
    forced = (2, 999, 2, 5)
    simulation.core.add_request("a", prompt(40), SamplingParams(max_tokens=4, forced_token_ids=forced))
    simulation.core.add_request("b", prompt(3), SamplingParams(max_tokens=30))
    ended = {request.request_id: request for request in simulation.run()}
    assert ended["a"].output_token_ids == forced


def test_derived_seeds_are_the_seed_itself_first_and_then_all_unlike() -> None:
    assert derived_seed(7, 0) == 7
    seeds = {derived_seed(seed, index) for seed in range(-2, 30) for index in range(1, 30)}
    assert len(seeds) == 32 * 29
    assert seeds.isdisjoint(range(30))


def test_min_p_keeps_tokens_by_their_share_of_the_likeliest(llm: LLM) -> None:
    """With min_p 1 only the likeliest is left, whatever the temperature."""
    greedy, hot = (
        SamplingParams(max_tokens=10, ignore_eos=True),
        SamplingParams(max_tokens=10, ignore_eos=True, temperature=5.0, min_p=1.0, seed=3),
    )
    [first], [second] = llm.generate([PROMPT], greedy), llm.generate([PROMPT], hot)
    assert first.token_ids == second.token_ids
