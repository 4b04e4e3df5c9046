"""Prompts of blocks: equal ids are equal tokens and unlike ids unlike ones, also after a cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.records import counted, patiently

from quantgate.traces.prompt_blocks import PromptBlocks, blocks_of
from quantgate.traces.record import TraceRecord
from quantgate.workload.build_plan import build_plan
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate.workload.transforms import Clip, TransformContext

# Of so many words two unlike blocks begin with these alike once in 10 ** 13.
ALIKE_BY_CHANCE = 4


class ManyWords:
    """As much of a tokenizer as stand-in prompts need: a word for each pair of a consonant and four letters."""

    def __init__(self) -> None:
        letters = "abcdefghijklmn"
        self._words = [f" q{a}{b}{c}" for a in letters for b in letters for c in letters]

    def get_vocab(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self._words)}

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(self._words[token_id] for token_id in token_ids)

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        raise AssertionError("there is no text")

    def apply_chat_template(self, *_arguments: object, **_settings: object) -> str:
        raise AssertionError("there are no messages")


ENCODER = PromptEncoder(ManyWords(), seed=5)


def blocky(request_id: str, tokens: int, ids: Sequence[int], block_tokens: int, at_s: float = 0.0) -> TraceRecord:
    return counted(request_id, at_s, prompt=tokens, prompt_blocks=PromptBlocks(tuple(ids), block_tokens))


def common(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@st.composite
def two_prompts(draw: st.DrawFn) -> tuple[TraceRecord, TraceRecord]:
    size = draw(st.integers(1, 40))
    ids = st.lists(st.integers(0, 3), min_size=1, max_size=6)
    records = []
    for name in "ab":
        blocks = draw(ids)
        records.append(blocky(name, len(blocks) * size - draw(st.integers(0, size - 1)), blocks, size))
    return records[0], records[1]


@patiently
@given(two_prompts(), st.integers(1, 250))
def test_prompts_share_as_many_tokens_as_their_ids_say_also_when_they_are_cut(
    pair: tuple[TraceRecord, TraceRecord], limit: int
) -> None:
    cut = Clip(max_prompt_tokens=limit, policy="cut").apply(pair, TransformContext(ENCODER, 5)).records
    for one, other in (pair, cut):
        assert one.prompt_blocks is not None
        assert other.prompt_blocks is not None
        tokens, other_tokens = ENCODER.encode(one), ENCODER.encode(other)
        assert (len(tokens), len(other_tokens)) == (one.prompt_token_count, other.prompt_token_count)
        promised = common(one.prompt_blocks.ids, other.prompt_blocks.ids) * one.prompt_blocks.block_tokens
        shorter = min(len(tokens), len(other_tokens))
        assert min(promised, shorter) <= common(tokens, other_tokens) < min(promised, shorter) + ALIKE_BY_CHANCE


@patiently
@given(two_prompts(), st.integers(1, 250))
def test_a_cut_keeps_the_first_tokens_and_as_many_blocks_as_they_fill(
    pair: tuple[TraceRecord, TraceRecord], limit: int
) -> None:
    (cut,) = Clip(max_prompt_tokens=limit, policy="cut").apply(pair[:1], TransformContext(ENCODER, 5)).records
    assert ENCODER.encode(cut) == ENCODER.encode(pair[0])[:limit]
    assert cut.prompt_blocks is not None
    assert cut.prompt_token_count is not None
    assert len(cut.prompt_blocks.ids) == blocks_of(cut.prompt_token_count, cut.prompt_blocks.block_tokens)


def test_another_seed_draws_other_blocks() -> None:
    record = blocky("a", 30, [0, 1, 2], 10)
    other = PromptEncoder(ManyWords(), seed=6)
    assert common(ENCODER.encode(record), other.encode(record)) < ALIKE_BY_CHANCE


def test_a_block_is_no_request_of_the_same_name() -> None:
    assert common(ENCODER.encode(blocky("x", 30, [7], 30)), ENCODER.encode(counted("7", prompt=30))) < ALIKE_BY_CHANCE


def test_the_plan_has_the_shared_tokens() -> None:
    records = [blocky("a", 25, [0, 1, 2], 10), blocky("b", 23, [0, 1, 3], 10, at_s=1)]
    plan = build_plan(records, ManyWords(), source="x", source_sha256="", seed=5)
    first, second = (request.prompt_token_ids for request in plan.requests)
    assert first[:20] == second[:20]
    assert first[20:23] != second[20:]
