"""What the ids of a trace's blocks promise a prefix cache: how much of the prompts it can find, at best."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from quantgate.traces.prompt_blocks import PromptBlocks
from quantgate.traces.record import TraceRecord


@dataclass(frozen=True, slots=True)
class PromisedSharing:
    """Of the prompts whose blocks the trace tells.

    blocks, shared_blocks: the trace's own blocks, and those that an earlier prompt had behind the same start.
    prompt_tokens, cached_tokens: all tokens, and those that an engine finds in a cache of so many KV blocks: whole ones
    only, and never a prompt's last token, which it computes for its logits.
    """

    blocks: int
    shared_blocks: int
    prompt_tokens: int
    cached_tokens: int

    @property
    def hit_rate(self) -> float | None:
        """Cached over all prompt tokens; None where the trace tells of no blocks."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


def promised_sharing(
    records: Iterable[TraceRecord], kv_block_tokens: int, cache_blocks: int | None = None
) -> PromisedSharing:
    """What the records promise a cache, asked one after the other (see `SharingCount`)."""
    count = SharingCount(kv_block_tokens, cache_blocks)
    for record in records:
        count.add(record)
    return count.promised()


class SharingCount:
    """Sees prompts one by one, each known to the cache before the next comes; memory grows with unlike blocks alone.

    kv_block_tokens: the engine's block size, whichever the trace's is. cache_blocks: KV blocks that the cache holds,
    those asked for longest ago leaving first, answers' own blocks among them; None: all that ever came.
    """

    def __init__(self, kv_block_tokens: int, cache_blocks: int | None = None) -> None:
        self._size = kv_block_tokens
        self._starts = _Starts()
        self._cache: _Cache = _WholeCache() if cache_blocks is None else _LruCache(kv_block_tokens, cache_blocks)
        self._blocks = self._shared_blocks = self._prompt_tokens = self._cached_tokens = 0

    def add(self, record: TraceRecord) -> None:
        if record.prompt_blocks is not None and record.prompt_token_count is not None:
            self.ask(record.prompt_blocks, record.prompt_token_count, record.max_tokens)

    def ask(self, blocks: PromptBlocks, tokens: int, answer_tokens: int) -> int:
        """Tokens of this prompt that the cache has, which then knows the prompt and its answer."""
        before = self._starts.known
        starts = self._starts.of(blocks.ids)
        prompt = _Prompt(starts, blocks.block_tokens, tokens, answer_tokens)
        self._blocks += len(starts)
        self._shared_blocks += sum(start <= before for start in starts)
        self._prompt_tokens += prompt.tokens
        found = self._cache.found_tokens(prompt) // self._size * self._size
        cached = min(found, prompt.tokens - 1)
        self._cached_tokens += cached
        return cached

    def promised(self) -> PromisedSharing:
        """What those that were added promise."""
        return PromisedSharing(self._blocks, self._shared_blocks, self._prompt_tokens, self._cached_tokens)


@dataclass(frozen=True, slots=True)
class _Prompt:
    """starts: for each block the number of the start that ends with it."""

    starts: Sequence[int]
    block_tokens: int
    tokens: int
    answer_tokens: int

    def tokens_of(self, block: int) -> int:
        return min(self.block_tokens, self.tokens - block * self.block_tokens)


class _Starts:
    """Numbers the starts of prompts: a block's keys and values are those of all that stands before it too."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}

    @property
    def known(self) -> int:
        """Starts have the numbers from 1 to this one."""
        return len(self._numbers)

    def of(self, ids: Iterable[int]) -> list[int]:
        start = 0
        numbers = []
        for block_id in ids:
            start = self._numbers.setdefault((start, block_id), len(self._numbers) + 1)
            numbers.append(start)
        return numbers


class _Cache(Protocol):
    def found_tokens(self, prompt: _Prompt) -> int:
        """Tokens of the prompt's start that are there; from then on the prompt and its answer are."""


class _WholeCache:
    """Holds every prompt, by the trace's own blocks: what a prompt finds is the longest start of an earlier one."""

    def __init__(self) -> None:
        self._longest: dict[int, int] = {}

    def found_tokens(self, prompt: _Prompt) -> int:
        found = 0
        for block, start in enumerate(prompt.starts):
            wanted = prompt.tokens_of(block)
            common = min(wanted, self._longest.get(start, 0))
            found += common
            if common < wanted:
                break
        for block, start in enumerate(prompt.starts):
            self._longest[start] = max(prompt.tokens_of(block), self._longest.get(start, 0))
        return found


class _LruCache:
    """Holds the KV blocks that were asked for last."""

    def __init__(self, kv_block_tokens: int, cache_blocks: int) -> None:
        self._size = kv_block_tokens
        self._most = cache_blocks
        self._held: OrderedDict[tuple[int, int], None] = OrderedDict()
        self._answers = 0

    def found_tokens(self, prompt: _Prompt) -> int:
        asked = self._blocks_of(prompt)
        found = next((place for place, block in enumerate(asked) if block not in self._held), len(asked))
        # The last token of an answer is drawn and never stored.
        stored = (prompt.tokens + prompt.answer_tokens - 1) // self._size
        self._answers += 1
        answered = [(-self._answers, place) for place in range(len(asked), stored)]
        # Of one prompt's blocks the last ones leave first: without them the start can still be found.
        for block in reversed([*asked, *answered]):
            self._held[block] = None
            self._held.move_to_end(block)
        while len(self._held) > self._most:
            self._held.popitem(last=False)
        return found * self._size

    def _blocks_of(self, prompt: _Prompt) -> list[tuple[int, int]]:
        """Whole KV blocks of the prompt, each told by the start that it ends in and its place there."""
        size = self._size
        return [
            (prompt.starts[((place + 1) * size - 1) // prompt.block_tokens], place)
            for place in range(prompt.tokens // size)
        ]
