"""Who may hold how much of the KV cache: promises, growth on demand, and the one place where blocks are released."""

from __future__ import annotations

from quantgate_engine.kv.block_pool import BlockPool, BlockPoolError
from quantgate_engine.kv.block_table import BlockTable, KVUsage


class KVManager:
    """Block tables of the requests that run.

    A request opens a table with a promise of blocks and takes them as its tokens come: memory that is promised but not
    taken stays free for nobody else, so a request that was let in can always go on.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self._pool = BlockPool(num_blocks)
        self._tables: dict[str, BlockTable] = {}
        self._owed_blocks = 0
        self._stored_tokens = 0

    @property
    def num_blocks(self) -> int:
        return self._pool.num_blocks

    @property
    def held_blocks(self) -> int:
        return self._pool.num_held

    @property
    def unpromised_blocks(self) -> int:
        """Free blocks that no running request may claim."""
        return self._pool.num_free - self._owed_blocks

    @property
    def stored_tokens(self) -> int:
        """Token slots in use, over all tables."""
        return self._stored_tokens

    @property
    def slot_utilization(self) -> float:
        """Token slots in use / slots in allocated blocks (0 where none is); its complement is the tail waste."""
        held_blocks = self.held_blocks  # Read once: another thread may look while a step gives the last block back.
        return self._stored_tokens / (held_blocks * self.block_size) if held_blocks else 0.0

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def open(self, owner: str, max_tokens: int, now_ns: int) -> None:
        """Promises `owner` the blocks of `max_tokens` slots; raises BlockPoolError where they are not to be had."""
        promised = self.blocks_for(max_tokens)
        if owner in self._tables or promised > self.unpromised_blocks:
            raise BlockPoolError(f"request {owner} was let in with a table, or without {promised} blocks to promise")
        self._tables[owner] = BlockTable(promised_blocks=promised, changed_ns=now_ns)
        self._owed_blocks += promised

    def grow(self, owner: str, tokens: int, now_ns: int) -> tuple[int, ...]:
        """Takes the blocks that `tokens` slots need and are not there yet; returns the table as it then stands."""
        table = self._tables[owner]
        missing = self.blocks_for(tokens) - len(table.blocks)
        if missing > table.owed_blocks:
            raise BlockPoolError(f"request {owner} grew to {tokens} tokens, past its {table.promised_blocks} blocks")
        if missing > 0:
            table.account(now_ns)
            table.blocks.extend(self._pool.take(owner) for _ in range(missing))
            self._owed_blocks -= missing
        self._stored_tokens += tokens - table.stored_tokens
        table.stored_tokens = tokens
        return tuple(table.blocks)

    def release(self, owner: str, now_ns: int) -> KVUsage:
        """Gives back all that `owner` holds and was promised. A request that never opened a table used nothing."""
        table = self._tables.pop(owner, None)
        if table is None:
            return KVUsage(peak_blocks=0, block_seconds=0.0)
        table.account(now_ns)
        self._pool.give_back(owner, reversed(table.blocks))
        self._owed_blocks -= table.owed_blocks
        self._stored_tokens -= table.stored_tokens
        return table.usage()

    def check(self) -> None:
        """Raises BlockPoolError unless free + held = total, each block has one owner, and the promises add up."""
        self._pool.check({owner: table.blocks for owner, table in self._tables.items()})
        owed = sum(table.owed_blocks for table in self._tables.values())
        stored = sum(table.stored_tokens for table in self._tables.values())
        if (owed, stored) != (self._owed_blocks, self._stored_tokens) or self.unpromised_blocks < 0:
            raise BlockPoolError(
                f"the tables owe {owed} blocks and store {stored} tokens; the books say "
                f"{self._owed_blocks} and {self._stored_tokens}, with {self._pool.num_free} blocks free"
            )
