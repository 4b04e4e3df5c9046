"""Did an arm find in its prefix cache what the prompts that it was sent promise?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quantgate.replay.replay_log import CellResult
from quantgate.store.manifest import PrefixSharing
from quantgate.traces.promised_sharing import SharingCount
from quantgate.traces.prompt_blocks import PromptBlocks
from quantgate.workload.plan import PlannedRequest


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """An arm's cache, as far as it is known.

    block_tokens: of one KV block; without a word of the arm the size that most servers take. blocks: how many it holds;
    None: not told, taken as endless. enabled: whether prompts share blocks; None: not told.
    """

    block_tokens: int = 16
    blocks: int | None = None
    enabled: bool | None = None


UNKNOWN_CACHE = PrefixCache()


def prefix_sharing(
    cells: Sequence[CellResult], requests: Sequence[PlannedRequest], cache: PrefixCache
) -> PrefixSharing | None:
    """Of one arm's requests whose cached tokens it told; of all that it was sent, where it told none.

    A cell begins with an empty cache, in which the prompts are looked for in the order in which they were sent. None
    where nobody knows the prompts' token ids.
    """
    prompts = _blocks_of_prompts(requests, cache.block_tokens)
    asked = [entry for result in cells for entry in _asked(result, prompts, cache)]
    if not asked:
        return None
    told = [entry for entry in asked if entry.cached is not None]
    counted = told or asked
    return PrefixSharing(
        block_tokens=cache.block_tokens,
        cache_blocks=cache.blocks,
        enabled=cache.enabled,
        requests=len(counted),
        prompt_tokens=sum(entry.tokens for entry in counted),
        promised_tokens=sum(entry.promised for entry in counted),
        cached_tokens=sum(entry.cached or 0 for entry in told) if told else None,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """Tokens of one prompt: all, those that the cache should have, and those that it had; None: not told."""

    tokens: int
    promised: int
    cached: int | None


@dataclass(frozen=True, slots=True)
class _Prompt:
    blocks: PromptBlocks
    tokens: int


def _asked(result: CellResult, prompts: Mapping[str, _Prompt], cache: PrefixCache) -> Iterator[_Asked]:
    columns = ["request_id", "sent_ns", "output_tokens", "cached_prompt_tokens", "cached_told"]
    count = SharingCount(cache.block_tokens, cache.blocks)
    for row in result.requests.select(columns).sort_by("sent_ns").to_pylist():
        prompt = prompts.get(row["request_id"])
        if prompt is None:
            continue
        promised = count.ask(prompt.blocks, prompt.tokens, row["output_tokens"])
        yield _Asked(prompt.tokens, promised, row["cached_prompt_tokens"] if row["cached_told"] else None)


def _blocks_of_prompts(requests: Sequence[PlannedRequest], block_tokens: int) -> dict[str, _Prompt]:
    """Each prompt's KV blocks, numbered by their tokens, so that equal blocks have equal numbers."""
    numbers: dict[bytes, int] = {}
    prompts = {}
    for request in requests:
        if not request.prompt_token_ids:
            continue
        ids = np.array(request.prompt_token_ids, dtype=np.int64)
        ends = range(block_tokens, len(ids) + block_tokens, block_tokens)
        blocks = tuple(numbers.setdefault(ids[end - block_tokens : end].tobytes(), len(numbers)) for end in ends)
        prompts[request.request_id] = _Prompt(PromptBlocks(blocks, block_tokens), len(ids))
    return prompts
