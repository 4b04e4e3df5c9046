"""How a device's memory is shared out between a step and the KV pool. Plain numbers: no torch."""

from __future__ import annotations

from quantgate_engine.executor.kv_cache import DEFAULT_CONTEXT_TOKENS
from quantgate_kernels.step_rows import StepRows

DEFAULT_SHARE = 0.9
"""What is left is for fragments that fit nothing, for code that is loaded later, and for recorded steps themselves."""

PEAKS_WITH_GRAPHS = 2
"""Recorded steps keep their memory to themselves: at most as much again as the largest step needs."""


def blocks_that_fit(free_bytes: int, step_bytes: int, share: float, block_bytes: int) -> int:
    """share x (what is free - what steps need) / bytes of a block."""
    return max(0, int((free_bytes - step_bytes) * share)) // block_bytes


def least_blocks(max_context_tokens: int, block_size: int) -> int:
    """Blocks without which a pool serves hardly anybody: one context, of 2,048 tokens at most."""
    return -(-min(max_context_tokens, DEFAULT_CONTEXT_TOKENS) // block_size)


def longest_context(max_context_tokens: int, pool_tokens: int, sequences: int, step_tokens: int) -> int:
    """Of so many sequences side by side, in a pool that no more tokens can fit into than `pool_tokens`."""
    each = max(1, pool_tokens // sequences)
    return min(max_context_tokens, max(each, -(-step_tokens // sequences)))


def largest_step(step_tokens: int, sequences: int, context: int, block_size: int) -> StepRows:
    """A step of so many tokens, if `sequences` contexts have them: prompts first, one token at least of everybody.

    All tables are block 0 alone, over and over: what it costs does not depend on what is read.
    """
    new: list[int] = []
    for others in range(sequences - 1, -1, -1):
        new.append(max(1, min(context, step_tokens - sum(new) - others)))
    starts = [sum(new[:index]) for index in range(sequences + 1)]
    table = (0,) * -(-context // block_size)
    return StepRows((0,) * starts[-1], starts, (context,) * sequences, (table,) * sequences, block_size)
