"""How many tokens came with each event of a stream. Servers send text; a chunk of it may be one token or twenty.

The ways are tried in order of trust, and the first that can tell is named in the result:

1. `ids`, 2. `logprobs`: the server sends token ids, or log-probs, with each chunk.
3. `usage`: the server's total equals the number of chunks, so that each is one token.
4. `retokenized`: the whole text is tokenized again, and each token given to the chunk that completes it. Unlike
   tokenizing each prefix, this takes one pass and never counts a token twice.
5. `chunks`: nothing better is known than one token a chunk.

Where the server gives a total (`usage.completion_tokens`), the counts add up to it: ids or log-probs that do not are
not believed, and the two last ways are scaled to it, by their own counts and by length of text. Without any chunk
there is no time to give the tokens to, and the sum is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from quantgate.targets.transfer import TokenCounting
from quantgate.workload.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event that carried tokens, or the one that ended the answer (`is_stop`): an end token has no text."""

    text: str = ""
    token_ids: tuple[int, ...] | None = None
    logprob_tokens: int | None = None
    is_stop: bool = False


@dataclass(frozen=True, slots=True)
class TokenCount:
    """per_chunk: in order of the chunks. token_ids: of the whole answer, where the server sent them."""

    per_chunk: tuple[int, ...]
    counted_by: TokenCounting
    token_ids: tuple[int, ...] = ()


def count_tokens(chunks: Sequence[Chunk], total: int | None, tokenizer: Tokenizer | None) -> TokenCount:
    """`total`: completion tokens by the server's usage, if it says."""
    return (
        _by_ids(chunks, total)
        or _by_logprobs(chunks, total)
        or _by_usage(chunks, total)
        or _by_retokenizing(chunks, total, tokenizer)
        or TokenCount(_one_each(chunks, total), "chunks")
    )


def _by_ids(chunks: Sequence[Chunk], total: int | None) -> TokenCount | None:
    known = [chunk.token_ids for chunk in chunks]
    per_chunk = _told([None if ids is None else len(ids) for ids in known], chunks, total)
    if per_chunk is None:
        return None
    return TokenCount(per_chunk, "ids", tuple(token_id for ids in known for token_id in ids or ()))


def _by_logprobs(chunks: Sequence[Chunk], total: int | None) -> TokenCount | None:
    per_chunk = _told([chunk.logprob_tokens for chunk in chunks], chunks, total)
    return None if per_chunk is None else TokenCount(per_chunk, "logprobs")


def _told(counts: list[int | None], chunks: Sequence[Chunk], total: int | None) -> tuple[int, ...] | None:
    """What the server told chunk by chunk, unless it left one out or contradicts its own total."""
    if not chunks or any(count is None and not chunk.is_stop for count, chunk in zip(counts, chunks, strict=True)):
        return None
    told = tuple(count or 0 for count in counts)
    return told if sum(told) > 0 and total in (None, sum(told)) else None


def _by_usage(chunks: Sequence[Chunk], total: int | None) -> TokenCount | None:
    """The end token counts in the total, though no text shows it: it came with the event that ended the answer."""
    for per_chunk in (tuple(int(not chunk.is_stop) for chunk in chunks), (1,) * len(chunks)):
        if sum(per_chunk) == total:
            return TokenCount(per_chunk, "usage")
    return None


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
    return TokenCount(_first_has_one(_scaled(counts, sum(counts) if total is None else total)), "retokenized")


def _one_each(chunks: Sequence[Chunk], total: int | None) -> tuple[int, ...]:
    if total is None:
        return tuple(int(not chunk.is_stop) for chunk in chunks)
    return _first_has_one(_scaled([len(chunk.text) for chunk in chunks], total))


def _scaled(weights: Sequence[int], total: int) -> list[int]:
    """`total` cut in proportion to the weights, in whole tokens: each cut lies at the rounded share of what is past."""
    whole = sum(weights)
    if whole == 0:
        return [0] * (len(weights) - 1) + [total] if weights else []
    cuts = [(2 * total * past + whole) // (2 * whole) for past in accumulate(weights, initial=0)]
    return [after - before for before, after in pairwise(cuts)]


def _first_has_one(counts: list[int]) -> tuple[int, ...]:
    """The first text is the first token's, or a part of it: its arrival is the time to first token."""
    if counts and counts[0] == 0 and any(counts):
        giver = next(index for index, count in enumerate(counts) if count)
        counts[giver] -= 1
        counts[0] = 1
    return tuple(counts)
