"""Anonymized traces: lengths and sharing stay, nothing that was said does.

What "nothing" means is held by a test that needs no list of forbidden words: the file is the same, byte by byte, when
every word, name and label of the source is exchanged for another one. So no reader of the file, whatever else they
know, can tell these two sources apart, and no guess at a text can be tried on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.records import SECOND, counted, patiently
from tests.traffic.test_shared_prefixes import ManyWords, blocky
from tests.traffic.word_tokenizer import WordTokenizer

from quantgate.traces.native_row import NativeRow
from quantgate.traces.native_writer import native_line
from quantgate.traces.promised_sharing import promised_sharing
from quantgate.traces.prompt_blocks import PromptBlocks
from quantgate.traces.record import Message, TraceRecord
from quantgate.workload.anonymous import anonymize
from quantgate.workload.build_plan import build_plan
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate_engine.errors import ConfigurationError

# Two languages of as many words, which have no two letters in common.
LANGUAGES = (["a", "ba", "abcde", "edabceda", "cab"], ["v", "wxyzv", "zy", "xx", "yvwzyvwzyv"])
Said = tuple[tuple[str, tuple[int, ...]], ...]

turns = st.tuples(
    st.sampled_from(["system", "user", "assistant"]), st.lists(st.integers(0, 4), min_size=1, max_size=9).map(tuple)
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Said]:
    """Prompts of word numbers; some go on where an earlier one ended, or leave one on its way."""
    prompts: list[Said] = []
    for _ in range(draw(st.integers(1, 7))):
        start: Said = ()
        if prompts and draw(st.booleans()):
            earlier = draw(st.sampled_from(prompts))
            start = earlier[: draw(st.integers(0, len(earlier)))]
        prompts.append((*start, draw(turns)))
    return prompts


def spoken(prompts: Sequence[Said], language: int) -> list[TraceRecord]:
    """The prompts in the words of one language, under names, labels and right answers of that language too."""
    words = LANGUAGES[language]
    return [
        TraceRecord(
            request_id=f"{words[0]}{number}",
            scheduled_ns=5 * SECOND + number,
            max_tokens=1 + number,
            messages=tuple(Message(role, " ".join(words[word] for word in said)) for role, said in prompt),
            slo_class=words[number % 2],
            session_id=f"{words[1]}-{number}",
            tags=(words[2], "chat"),
            checker={"kind": "contains", "texts": (words[3],), "match": "all"},
            limit_tokens=50,
        )
        for number, prompt in enumerate(prompts)
    ]


def common(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def file_of(records: Sequence[TraceRecord]) -> str:
    return "\n".join(map(native_line, records))


@patiently
@given(conversations(), st.integers(1, 6))
def test_other_words_shared_in_the_same_way_make_the_same_file(prompts: list[Said], block_tokens: int) -> None:
    files = [
        file_of(anonymize(spoken(prompts, language), PromptEncoder(WordTokenizer()), block_tokens)[0])
        for language in (0, 1)
    ]
    assert files[0] == files[1]
    assert not any(word in file for file, words in zip(files, LANGUAGES, strict=True) for word in words[2:4])


@patiently
@given(conversations(), st.integers(1, 6), st.integers(1, 3), st.none() | st.integers(0, 12))
def test_a_cache_finds_as_much_as_in_the_texts(
    prompts: list[Said], block_tokens: int, times: int, cache_blocks: int | None
) -> None:
    """The texts are told to the count of sharing token by token, as blocks of one token each."""
    encoder = PromptEncoder(WordTokenizer())
    source = spoken(prompts, 0)
    tokens = [encoder.encode(record) for record in source]
    by_token = [blocky(str(number), len(ids), ids, 1, at_s=number) for number, ids in enumerate(tokens)]
    by_token = [
        TraceRecord(record.request_id, 0, asked.max_tokens, prompt_token_count=record.prompt_token_count,
                    prompt_blocks=record.prompt_blocks)
        for record, asked in zip(by_token, source, strict=True)
    ]  # fmt: skip
    written, _ = anonymize(source, encoder, block_tokens)
    assert [record.prompt_token_count for record in written] == [len(ids) for ids in tokens]
    kv_block = block_tokens * times
    expected = promised_sharing(by_token, kv_block, cache_blocks)
    found = promised_sharing(written, kv_block, cache_blocks)
    assert (found.cached_tokens, found.prompt_tokens) == (expected.cached_tokens, expected.prompt_tokens)


@patiently
@given(conversations(), st.integers(4, 6))
def test_the_prompts_that_a_replay_sends_share_whole_blocks_as_the_texts_did(
    prompts: list[Said], block_tokens: int
) -> None:
    encoder = PromptEncoder(WordTokenizer())
    source = spoken(prompts, 0)
    lines = map(native_line, anonymize(source, encoder, block_tokens)[0])
    read = [NativeRow.model_validate_json(line).to_record() for line in lines]
    plan = build_plan(read, ManyWords(), source="x", source_sha256="", seed=3)
    sent = [request.prompt_token_ids for request in plan.requests]
    asked = [encoder.encode(record) for record in source]
    assert [len(ids) for ids in sent] == [len(ids) for ids in asked]
    for one, other in combinations(range(len(asked)), 2):
        shared = common(asked[one], asked[other]) // block_tokens
        assert common(sent[one], sent[other]) // block_tokens == shared


def test_equal_words_behind_another_start_are_another_block() -> None:
    records = [TraceRecord(name, 0, 1, prompt_text=text) for name, text in (("a", "x x y y"), ("b", "z z y y"))]
    written, _ = anonymize(records, PromptEncoder(WordTokenizer()), 1)
    blocks = [record.prompt_blocks.ids for record in written if record.prompt_blocks]
    # The beginning-of-text token is the same.
    assert blocks == [(0, 1, 2, 3, 4), (0, 5, 6, 7, 8)]


def test_times_start_at_zero_and_numbers_stand_for_names() -> None:
    def record(name: str, at_s: float, **changes: Any) -> TraceRecord:
        return counted(name, at_s, 9, 4, **changes)

    source = [
        record("anna", 7.5, session_id="anna's", tags=("rag", "anna"), slo_class="batch", limit_tokens=8),
        record("bert", 8, slo_class="gold", tags=("code",), disconnect_after_ns=SECOND, read_tokens_per_s=2.5),
        record("carl", 9, session_id="anna's", turn=2, think_time_ns=SECOND, slo_class="batch", tags=("anna", "vip")),
    ]
    written, step = anonymize(source, PromptEncoder(None), 16, keep=["vip"])
    assert written == [
        counted("r1", 0, 9, 4, session_id="s1", tags=("rag", "tag-1"), slo_class="batch", limit_tokens=8),
        counted(
            "r2", 0.5, 9, 4, slo_class="class-1", tags=("code",), disconnect_after_ns=SECOND, read_tokens_per_s=2.5
        ),
        counted(
            "r3", 1.5, 9, 4, session_id="s1", turn=2, think_time_ns=SECOND, slo_class="batch", tags=("tag-1", "vip")
        ),
    ]
    assert step.parameters == {
        "texts": 0, "unlike_blocks": 0, "classes_renamed": 1, "tags_renamed": 1, "checkers_removed": 0,
    }  # fmt: skip
    assert (step.rows_in, step.rows_out, step.rows_touched) == (3, 3, 3)


def test_a_kept_name_is_nobody_elses_number() -> None:
    source = [counted("a", tags=("tag-1", "secret"))]
    assert anonymize(source, PromptEncoder(None), 16, keep=["tag-1"])[0][0].tags == ("tag-1", "tag-2")


def test_blocks_that_a_trace_tells_keep_their_size_and_get_new_numbers() -> None:
    source = [blocky("a", 25, [9001, 77, 5], 10), blocky("b", 23, [9001, 77, 6], 10), blocky("c", 10, [77], 10)]
    written, _ = anonymize(source, PromptEncoder(None), 16)
    assert [record.prompt_blocks for record in written] == [
        PromptBlocks((0, 1, 2), 10), PromptBlocks((0, 1, 3), 10), PromptBlocks((4,), 10),
    ]  # fmt: skip
    assert promised_sharing(written, 5) == promised_sharing(source, 5)


def test_token_ids_are_told_by_blocks_too() -> None:
    source = [TraceRecord("a", 0, 1, prompt_token_ids=(5, 6, 7)), TraceRecord("b", 0, 1, prompt_token_ids=(5, 6, 8))]
    written, _ = anonymize(source, PromptEncoder(None), 2)
    assert [record.prompt_blocks for record in written] == [PromptBlocks((0, 1), 2), PromptBlocks((0, 2), 2)]
    assert all(record.prompt_token_ids is None for record in written)


def test_texts_beside_blocks_of_another_size_are_refused() -> None:
    source = [blocky("a", 25, [1, 2, 3], 10), TraceRecord("b", 0, 1, prompt_text="hi")]
    with pytest.raises(ConfigurationError, match=r"blocks of 10 tokens, but texts .* of 16; give --block-tokens 10"):
        anonymize(source, PromptEncoder(WordTokenizer()), 16)
