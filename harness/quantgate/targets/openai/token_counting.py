"""How many tokens came with each event of a stream. Servers send text; a chunk of it may be one token or twenty.

The ways are tried in order of trust, and the first that can tell is named in the result:

1. `ids`, 2. `logprobs`: the server sends token ids, or log-probs, with each chunk.
3. `usage`: the server's total equals the number of chunks, so that each is one token.
4. `retokenized`: the whole text is tokenized again, and each token given to the chunk that completes it. Unlike
   tokenizing each prefix, this takes one pass and never counts a token twice.
5. `spread`: the server's total, given to the chunks by length of text.
6. `chunks`: nothing better is known than one token a chunk.

Where the server gives a total that can be believed (`believable.py`), the counts add up to it: ids or log-probs that do
not are not believed, and tokens counted again are scaled to it. The end token is the exception: the total may hold it
though nobody saw it come, and the event that ends an answer, often sent together with the last text, is no time of a
token. It is counted only where the server tells its id or log-prob, or where nothing else came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from quantgate.targets.openai.believable import Chunk, believed_total
from quantgate.targets.transfer import TokenCounting
from quantgate.workload.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class TokenCount:
    """per_chunk: in order of the chunks. token_ids: of the whole answer, where the server sent them."""

    per_chunk: tuple[int, ...]
    counted_by: TokenCounting
    token_ids: tuple[int, ...] = ()


def count_tokens(
    chunks: Sequence[Chunk], total: int | None, tokenizer: Tokenizer | None, limit: int | None = None
) -> TokenCount:
    """`total`: completion tokens by the server's usage, if it says. `limit`: the most that were asked for, if known."""
    total = believed_total(total, chunks, limit)
    return (
        _by_ids(chunks, total, limit)
        or _by_logprobs(chunks, total, limit)
        or _by_usage(chunks, total)
        or _by_retokenizing(chunks, total, tokenizer)
        or _by_spreading(chunks, total)
        or TokenCount(tuple(int(not chunk.is_stop) for chunk in chunks), "chunks")
    )


def _by_ids(chunks: Sequence[Chunk], total: int | None, limit: int | None) -> TokenCount | None:
    known = [chunk.token_ids for chunk in chunks]
    per_chunk = _told([None if ids is None else len(ids) for ids in known], chunks, total, limit)
    if per_chunk is None:
        return None
    return TokenCount(per_chunk, "ids", tuple(token_id for ids in known for token_id in ids or ()))


def _by_logprobs(chunks: Sequence[Chunk], total: int | None, limit: int | None) -> TokenCount | None:
    per_chunk = _told([chunk.logprob_tokens for chunk in chunks], chunks, total, limit)
    return None if per_chunk is None else TokenCount(per_chunk, "logprobs")


def _told(
    counts: list[int | None], chunks: Sequence[Chunk], total: int | None, limit: int | None
) -> tuple[int, ...] | None:
    """What the server told chunk by chunk, unless it left one out, contradicts its own total or tells too many."""
    if not chunks or any(count is None and not chunk.is_stop for count, chunk in zip(counts, chunks, strict=True)):
        return None
    told = tuple(count or 0 for count in counts)
    if sum(told) == 0 or (limit is not None and sum(told) > limit):
        return None
    return told if total in (None, sum(told)) else None


def _by_usage(chunks: Sequence[Chunk], total: int | None) -> TokenCount | None:
    """Every chunk one token; where the answer ended by itself, the total may hold the end token beside them."""
    shown = tuple(int(not chunk.is_stop) for chunk in chunks)
    if sum(shown) == total:
        return TokenCount(shown, "usage")
    if sum(shown) + 1 != total or not any(chunk.is_end_token for chunk in chunks):
        return None
    only_the_end = tuple(int(index == 0) for index in range(len(chunks)))
    return TokenCount(shown if any(shown) else only_the_end, "usage")


def _by_retokenizing(chunks: Sequence[Chunk], total: int | None, tokenizer: Tokenizer | None) -> TokenCount | None:
    # The workload asks less of a tokenizer; offsets are what transformers' fast ones give when called.
    if not callable(tokenizer):
        return None
    text = "".join(chunk.text for chunk in chunks)
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    ends = list(accumulate(len(chunk.text) for chunk in chunks))
    counts = [0] * len(chunks)
    position = 0
    for _, token_end in offsets:
        while position < len(ends) - 1 and ends[position] < token_end:
            position += 1
        counts[position] += 1
    if not any(counts):
        return None
    scaled = _scaled(counts, sum(counts) if total is None else total)
    return TokenCount(_ends_have_one(scaled, chunks), "retokenized")


def _by_spreading(chunks: Sequence[Chunk], total: int | None) -> TokenCount | None:
    if total is None or not chunks:
        return None
    return TokenCount(_ends_have_one(_scaled([len(chunk.text) for chunk in chunks], total), chunks), "spread")


def _scaled(weights: Sequence[int], total: int) -> list[int]:
    """`total` cut in proportion to the weights, in whole tokens: each cut lies at the rounded share of what is past."""
    whole = sum(weights)
    if whole == 0:
        return [0] * (len(weights) - 1) + [total]
    cuts = [(2 * total * past + whole) // (2 * whole) for past in accumulate(weights, initial=0)]
    return [after - before for before, after in pairwise(cuts)]


def _ends_have_one(counts: list[int], chunks: Sequence[Chunk]) -> tuple[int, ...]:
    """The first text is the first token's, or a part of it, and the last text the last one's: both times were seen."""
    shown = [index for index, chunk in enumerate(chunks) if not chunk.is_stop]
    given = [index for index, count in enumerate(counts) if count]
    if shown and given and counts[shown[0]] == 0:
        counts[given[0]] -= 1
        counts[shown[0]] = 1
    if shown and sum(counts) >= 2 and counts[shown[-1]] == 0:
        counts[max(index for index, count in enumerate(counts) if count)] -= 1
        counts[shown[-1]] = 1
    return tuple(counts)
