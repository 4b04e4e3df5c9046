"""What a trace's blocks promise a prefix cache, by hand and against a cache that looks at every token."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traffic.records import counted, patiently
from tests.traffic.test_shared_prefixes import blocky

from quantgate.traces.promised_sharing import PromisedSharing, promised_sharing
from quantgate.traces.record import TraceRecord

Token = tuple[int, int]


def by_every_token(records: Sequence[TraceRecord], size: int, cache_blocks: int | None) -> int:
    """Cached tokens: KV blocks are known by all tokens up to their end, the one asked for last stands last."""
    held: list[tuple[Token, ...]] = []
    cached = 0
    for number, record in enumerate(records, start=1):
        assert record.prompt_blocks is not None
        assert record.prompt_token_count is not None
        places = range(record.prompt_blocks.block_tokens)
        tokens = [(block, place) for block in record.prompt_blocks.ids for place in places]
        prompt = tokens[: record.prompt_token_count]
        stored = prompt + [(-number, place) for place in range(record.max_tokens - 1)]
        starts = [tuple(stored[:end]) for end in range(size, len(stored) + 1, size)]
        found = 0
        while found < len(prompt) // size and starts[found] in held:
            found += 1
        cached += min(found * size, len(prompt) - 1)
        held = [start for start in held if start not in starts] + starts[::-1]
        held = held if cache_blocks is None else held[-cache_blocks:] if cache_blocks else []
    return cached


@st.composite
def traces(draw: st.DrawFn) -> list[TraceRecord]:
    size = draw(st.integers(1, 9))
    records = []
    for number in range(draw(st.integers(1, 8))):
        ids = draw(st.lists(st.integers(0, 2), min_size=1, max_size=5))
        tokens = len(ids) * size - draw(st.integers(0, size - 1))
        records.append(blocky(f"r{number}", tokens, ids, size))
    return records


@patiently
@given(traces(), st.integers(1, 8), st.none() | st.integers(0, 12))
def test_it_is_what_a_cache_finds_that_looks_at_every_token(
    records: list[TraceRecord], size: int, cache_blocks: int | None
) -> None:
    promised = promised_sharing(records, size, cache_blocks)
    assert promised.cached_tokens == by_every_token(records, size, cache_blocks)
    assert promised.prompt_tokens == sum(record.prompt_token_count or 0 for record in records)


@patiently
@given(traces(), st.integers(1, 8))
def test_a_larger_cache_never_finds_less_and_an_endless_one_most(records: list[TraceRecord], size: int) -> None:
    rates = [promised_sharing(records, size, blocks).cached_tokens for blocks in (0, 1, 2, 4, 8, 1000)]
    assert all(less <= more for less, more in pairwise(rates))
    assert rates[0] == 0
    assert rates[-1] == promised_sharing(records, size).cached_tokens


def test_blocks_are_shared_behind_the_same_start_alone() -> None:
    records = [
        blocky("a", 1300, [0, 1, 2], 512),
        blocky("b", 1100, [0, 1, 3], 512),
        # Block 2 stands behind another start, so that its keys and values are others.
        blocky("c", 1500, [0, 2, 4], 512),
        counted("without blocks", prompt=5000),
    ]
    assert promised_sharing(records, 512) == PromisedSharing(
        blocks=9, shared_blocks=3, prompt_tokens=3900, cached_tokens=3 * 512
    )


def test_a_prompt_that_is_there_whole_computes_its_last_token() -> None:
    records = [blocky("a", 64, [0, 1], 32), blocky("b", 64, [0, 1], 32), blocky("c", 50, [0, 1], 32)]
    assert promised_sharing(records, 16).cached_tokens == 63 + 48


def test_answers_take_their_place_in_the_cache() -> None:
    def three(output: int) -> list[TraceRecord]:
        return [
            counted(record.request_id, prompt=32, output=output, prompt_blocks=record.prompt_blocks)
            for record in (blocky("a", 32, [0], 32), blocky("b", 32, [1], 32), blocky("c", 32, [0], 32))
        ]

    assert promised_sharing(three(output=1), 16, cache_blocks=4).cached_tokens == 31
    # The answer of b takes the place of the second block of a.
    assert promised_sharing(three(output=18), 16, cache_blocks=4).cached_tokens == 16


@pytest.mark.parametrize("records", [[], [counted("a")]])
def test_a_trace_without_blocks_promises_nothing(records: list[TraceRecord]) -> None:
    assert promised_sharing(records, 16).hit_rate is None
