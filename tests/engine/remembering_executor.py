"""A simulated executor whose cache has contents, and whose tokens depend on all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from tests.engine.simulation import VOCABULARY

from quantgate_engine.clock import VirtualClock
from quantgate_engine.executor.base import BlockCopy, CopyKind, SampledToken, ScheduledSequence
from quantgate_engine.executor.simulated import SimulatedExecutor, StepCosts

Slot = tuple[int, int]
"""(token id, position): what keys and values depend on here."""

NEVER_WRITTEN: Slot = (-1, -1)


def attended_token(context: list[Slot], seed: int) -> int:
    """The token that a whole context leads to; a single wrong slot leads elsewhere."""
    return int.from_bytes(hashlib.sha256(repr((context, seed)).encode()).digest()[:4], "big") % VOCABULARY


def attended_tokens(prompt_token_ids: tuple[int, ...], count: int, seed: int = 0) -> tuple[int, ...]:
    """What a request must produce, computed without engine and cache."""
    tokens = list(prompt_token_ids)
    for _ in range(count):
        tokens.append(attended_token([(token, position) for position, token in enumerate(tokens)], seed))
    return tuple(tokens[len(prompt_token_ids) :])


class RememberingExecutor(SimulatedExecutor):
    """Writes each token to its slot, copies blocks as told, and reads every slot of the context through the table.

    A lost copy, a block given to two, a stale prefix or a token computed twice: each makes a wrong token.
    """

    def __init__(self, clock: VirtualClock, num_blocks: int, block_size: int, host_blocks: int = 0) -> None:
        costs = StepCosts(base_ns=1000, per_prefill_token_ns=10, per_decode_request_ns=100, per_swapped_block_ns=5)
        super().__init__(
            clock,
            costs,
            num_blocks=num_blocks,
            block_size=block_size,
            max_context_tokens=512,
            vocab_size=VOCABULARY,
        )
        self.device = [[NEVER_WRITTEN] * block_size for _ in range(num_blocks)]
        self.host = [[NEVER_WRITTEN] * block_size for _ in range(host_blocks)]
        self.copies: list[BlockCopy] = []
        self.steps: list[tuple[ScheduledSequence, ...]] = []
        self.hook: Callable[[], None] | None = None

    def copy_blocks(self, copies: tuple[BlockCopy, ...]) -> None:
        super().copy_blocks(copies)
        self.copies.extend(copies)
        for copy in copies:
            source = self.host if copy.kind is CopyKind.SWAP_IN else self.device
            target = self.host if copy.kind is CopyKind.SWAP_OUT else self.device
            target[copy.target] = list(source[copy.source])

    def execute(self, sequences: tuple[ScheduledSequence, ...]) -> list[SampledToken | None]:
        self.steps.append(sequences)
        if self.hook is not None:
            self.hook()
        for sequence in sequences:
            for offset, token_id in enumerate(sequence.token_ids):
                self._write(sequence, sequence.start_position + offset, token_id)
        drawn = super().execute(sequences)
        return [
            SampledToken(attended_token(self._context(sequence), sequence.params.seed)) if token is not None else None
            for sequence, token in zip(sequences, drawn, strict=True)
        ]

    def _write(self, sequence: ScheduledSequence, position: int, token_id: int) -> None:
        block, slot = divmod(position, self.block_size)
        self.device[sequence.block_table[block]][slot] = (token_id, position)

    def _context(self, sequence: ScheduledSequence) -> list[Slot]:
        length = sequence.start_position + len(sequence.token_ids)
        return [
            self.device[sequence.block_table[position // self.block_size]][position % self.block_size]
            for position in range(length)
        ]
