"""A prompt told by the ids of its blocks: what it shares with other prompts, without a word of it."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.counted import counted


@dataclass(frozen=True, slots=True)
class PromptBlocks:
    """The ids of a prompt's blocks in order; equal ids stand for equal tokens.

    Every block has `block_tokens` tokens but the last one, which ends where the prompt does.
    """

    ids: tuple[int, ...]
    block_tokens: int

    def of_first(self, tokens: int) -> PromptBlocks:
        """The blocks of the prompt's first tokens; the last one may be cut."""
        return PromptBlocks(self.ids[: blocks_of(tokens, self.block_tokens)], self.block_tokens)


def blocks_of(tokens: int, block_tokens: int) -> int:
    """Blocks that a prompt of so many tokens takes."""
    return -(-tokens // block_tokens)


def misfit(blocks: int, tokens: int, block_tokens: int) -> str | None:
    """What is wrong where so many blocks do not make up the prompt, and which size would; None where they do.

    A trace that is read with another block size than its own has prompts that are many times too long or too short,
    with figures that look like any others: this is the one place where it shows.
    """
    needed = blocks_of(tokens, block_tokens)
    if blocks == needed:
        return None
    return (
        f"expected {counted(needed, 'id')} for {counted(tokens, 'prompt token')} in blocks of {block_tokens}, got "
        f"{blocks}, which {_fitting_sizes(blocks, tokens)}"
    )


def _fitting_sizes(blocks: int, tokens: int) -> str:
    """ceil(tokens / size) = blocks holds from tokens / blocks up to below tokens / (blocks - 1)."""
    if not blocks or not tokens:
        return "fits no size of blocks"
    smallest = blocks_of(tokens, blocks)
    if blocks == 1:
        return f"fits blocks of {smallest} tokens or more"
    largest = blocks_of(tokens, blocks - 1) - 1
    if largest < smallest:
        return "fits no size of blocks"
    # Sizes in use are powers of two.
    usual = 1 << (smallest - 1).bit_length()
    if smallest == largest or usual <= largest:
        return f"fits blocks of {min(usual, largest)}"
    return f"fits blocks of {smallest} to {largest}"
