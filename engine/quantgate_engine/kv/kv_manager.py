"""Who may hold how much of the KV cache: promises, growth on demand, and the one place where blocks are released."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quantgate_engine.executor.base import BlockCopy, CopyKind
from quantgate_engine.kv.block_pool import BlockPool, BlockPoolError
from quantgate_engine.kv.block_table import BlockTable, KVUsage
from quantgate_engine.kv.greatest_holders import GreatestHolders
from quantgate_engine.kv.holding import KVHolding
from quantgate_engine.kv.host_pool import HostPool
from quantgate_engine.kv.prefix_cache import PrefixCache
from quantgate_engine.kv.prefix_chain import PrefixChain
from quantgate_engine.kv.sessions import SessionKeeper
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.kv.start import FROM_SCRATCH, Start
from quantgate_engine.request import Request

NOTHING_USED = KVUsage(peak_blocks=0, block_seconds=0.0)


class KVManager:
    """Block tables of the requests that run.

    A request opens a table with a promise of blocks and takes them as its tokens come: memory that is promised but not
    taken stays free for nobody else. Whoever needs more than its promise asks for it (`promise`), and may be refused.
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        settings: CacheSettings | None = None,
        identity: tuple[str, ...] = (),
        num_host_blocks: int = 0,
    ) -> None:
        self.block_size = block_size
        self.prefixes = PrefixCache(num_blocks, block_size, identity)
        self.host = HostPool(num_host_blocks)
        self._pool = BlockPool(num_blocks, on_evict=self.prefixes.forget)
        self.greatest_holders = GreatestHolders()
        self.sessions = SessionKeeper(self._pool, settings or CacheSettings(), self.greatest_holders.note)
        self._tables: dict[str, BlockTable] = {}
        self._copies: list[BlockCopy] = []
        self._owed_blocks = 0
        self._table_tokens = 0

    @property
    def num_blocks(self) -> int:
        return self._pool.num_blocks

    @property
    def held_blocks(self) -> int:
        return self._pool.num_held

    @property
    def cached_blocks(self) -> int:
        """Blocks that nobody holds and a prefix lies in."""
        return self._pool.num_cached

    @property
    def unpromised_blocks(self) -> int:
        """Free and cached blocks that no running request may claim."""
        return self._pool.num_available - self._owed_blocks

    @property
    def committed_blocks(self) -> int:
        """Blocks that are held or promised."""
        return self._pool.num_held + self._owed_blocks

    @property
    def stored_tokens(self) -> int:
        """Token slots in use in held blocks; a slot that several share is one."""
        shares = self._pool.num_references - self._pool.num_held
        return self._table_tokens + (self.sessions.num_blocks - shares) * self.block_size

    @property
    def slot_utilization(self) -> float:
        """Token slots in use / slots in allocated blocks (0 where none is); its complement is the tail waste."""
        held_blocks = self.held_blocks  # Read once: another thread may look while a step gives the last block back.
        return self.stored_tokens / (held_blocks * self.block_size) if held_blocks else 0.0

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def blocks_of(self, owner: str) -> tuple[int, ...]:
        """The table of `owner` as it stands; empty where it has none."""
        table = self._tables.get(owner)
        return tuple(table.blocks) if table is not None else ()

    def needs(self, start: Start, max_tokens: int) -> int:
        """Unpromised blocks that a table takes which begins with `start` and is promised `max_tokens` slots."""
        cached = self._pool.num_unheld(start.shared)
        copied = bool(start.shared) and start.tokens % self.block_size != 0
        return self.blocks_for(max(max_tokens, start.tokens)) - len(start.shared) + cached + copied

    def has_room(self, start: Start, max_tokens: int, spare_blocks: int = 0, capacity: int | None = None) -> bool:
        """Whether such a table can be opened with `spare_blocks` to spare, and no more than `capacity` committed.

        Sessions that wait for their next turn make room where that may be enough, the oldest first.
        """
        missing = self._missing(start, max_tokens, spare_blocks, capacity)
        if missing > self.sessions.num_blocks:
            return False
        while missing > 0 and len(self.sessions):
            self.sessions.drop_oldest()
            missing = self._missing(start, max_tokens, spare_blocks, capacity)
        return missing <= 0

    def _missing(self, start: Start, max_tokens: int, spare_blocks: int, capacity: int | None) -> int:
        needs = self.needs(start, max_tokens)
        within = self.num_blocks if capacity is None else capacity
        return max(needs + spare_blocks - self.unpromised_blocks, needs + self.committed_blocks - within)

    def open(self, owner: str, max_tokens: int, now_ns: int, start: Start = FROM_SCRATCH) -> None:
        """Promises `owner` the blocks of `max_tokens` slots, and gives it those of its start.

        Raises BlockPoolError where they are not to be had.
        """
        promised = self.blocks_for(max(max_tokens, start.tokens))
        if owner in self._tables or self.needs(start, max_tokens) > self.unpromised_blocks:
            raise BlockPoolError(f"request {owner} was let in with a table, or without {promised} blocks to promise")
        table = BlockTable(promised_blocks=promised, opened_ns=now_ns, changed_ns=now_ns, stored_tokens=start.tokens)
        self._tables[owner] = table
        self._pool.share(owner, start.shared)
        table.blocks.extend(start.shared)
        if start.swapped:
            self._swap_in(owner, table)
        if start.cached:
            table.num_registered = start.tokens // self.block_size
        table.tail_is_foreign = bool(start.shared) and start.tokens % self.block_size != 0
        self._owed_blocks += table.owed_blocks
        self._table_tokens += start.tokens

    def grow(self, owner: str, tokens: int, now_ns: int) -> tuple[int, ...]:
        """Takes the blocks that `tokens` slots need and are not there yet; returns the table as it then stands.

        Raises BlockPoolError where that is more than `owner` was promised.
        """
        table = self._tables[owner]
        if tokens > table.ready_slots:
            self._take_blocks(owner, table, tokens, now_ns)
        self._table_tokens += tokens - table.stored_tokens
        table.stored_tokens = tokens
        return table.snapshot

    def fill(
        self, requests: Iterable[Request], now_ns: int, capacity: int
    ) -> tuple[dict[Request, tuple[int, ...]], list[Request]]:
        """Takes the slot of one more token for each request, as `extend` does for one of them.

        Returns their tables, in the order of `requests`, and those for whom there is no block: these have an empty
        table. Each step does this for each request that decodes, so there is no call in it.
        """
        all_tables, tables = self._tables, dict[Request, tuple[int, ...]]()
        filled, full = 0, dict[Request, BlockTable]()
        for request in requests:
            table, tokens = all_tables[request.request_id], request.num_computed_tokens + 1
            if tokens <= table.ready_slots:
                filled += tokens - table.stored_tokens
                table.stored_tokens = tokens
                tables[request] = table.snapshot
            else:
                tables[request] = ()
                full[request] = table
        self._table_tokens += filled
        growing = {
            request: table
            for request, table in full.items()
            if self._promise(table, request.num_computed_tokens + 1, capacity) and not table.tail_is_foreign
        }
        blocks = self._pool.take_each([request.request_id for request in growing])
        for (request, table), block in zip(growing.items(), blocks, strict=True):
            table.append([block], self.block_size, now_ns)
            table.stored_tokens += 1
            tables[request] = table.snapshot
        self._owed_blocks -= len(blocks)
        self._table_tokens += len(blocks)
        return tables, [request for request in full if request not in growing]

    def extend(self, owner: str, tokens: int, now_ns: int, capacity: int | None = None) -> tuple[int, ...] | None:
        """Grows a table as `grow` does, but beyond its promise where there is room for that; None where there is not.

        capacity: blocks that may be committed in all; None: as many as there are.
        """
        if not self._promise(self._tables[owner], tokens, capacity):
            return None
        return self.grow(owner, tokens, now_ns)

    def register(self, owner: str, chain: PrefixChain, count: int) -> None:
        """Lets later requests find the first `count` blocks of `owner`, which are computed, if it has a table."""
        table = self._tables.get(owner)
        if table is not None and (known := table.num_registered) < count:
            self._pool.keep(self.prefixes.add(chain, table.blocks[known:count], known))
            table.num_registered = count

    def release(self, owner: str, now_ns: int, session_id: str | None = None) -> KVUsage:
        """Gives back all that `owner` holds and was promised, on the device and on the host.

        A request that never opened a table used nothing. What the prefix cache knows of it goes to its session, where
        it has one and the settings let sessions live.
        """
        self.host.give_back(owner)
        table = self._tables.pop(owner, None)
        if table is None:
            return NOTHING_USED
        inherited: Sequence[int] = ()
        if session_id is not None:
            # What the cache cannot find again is of no use to the next turn.
            findable = self._pool.first_kept(table.blocks[: table.num_registered])
            inherited = self.sessions.kept_of(findable)
        table.account(now_ns)
        self.greatest_holders.note(table.holding(owner, now_ns))
        self._pool.give_back(owner, table.blocks[len(inherited) :][::-1])
        if session_id is not None:
            self.sessions.inherit(session_id, owner, inherited, now_ns)
        self._owed_blocks -= table.owed_blocks
        self._table_tokens -= table.stored_tokens
        return table.usage()

    def forget(self, now_ns: int) -> None:
        """Lets go of every session, and of whatever is cached and held by nobody."""
        self.sessions.expire(now_ns)
        while len(self.sessions):
            self.sessions.drop_oldest()
        self._pool.evict_all()

    def swap_out(self, owner: str, computed_tokens: int, now_ns: int) -> KVUsage | None:
        """Moves the computed part of a table to the host and releases it here; None where the host is too full."""
        count = self.blocks_for(computed_tokens)
        if not 0 < count <= self.host.num_free:
            return None
        blocks = self._tables[owner].blocks[:count]
        usage = self.release(owner, now_ns)
        slots = self.host.take(owner, count, now_ns)
        self._copies.extend(map(BlockCopy, (owner,) * count, (CopyKind.SWAP_OUT,) * count, blocks, slots))
        return usage

    def take_copies(self) -> tuple[BlockCopy, ...]:
        """The copies that the books imply since the last call, in the order in which they have to happen."""
        copies, self._copies = tuple(self._copies), []
        return copies

    def holdings(self, now_ns: int) -> list[KVHolding]:
        """Who holds blocks, those with the most first."""
        tables = [table.holding(owner, now_ns) for owner, table in self._tables.items()]
        others = self.sessions.holdings(now_ns) + self.host.holdings(now_ns)
        return sorted(tables + others, key=lambda holding: -holding.blocks)

    def check(self) -> None:
        """Raises BlockPoolError unless free + held + cached = total, every holder is known, and the promises add up."""
        tables = {owner: table.blocks for owner, table in self._tables.items()}
        self._pool.check({**tables, **self.sessions.blocks_by_holder})
        self.host.check()
        owed = sum(table.owed_blocks for table in self._tables.values())
        stored = sum(table.stored_tokens for table in self._tables.values())
        if (owed, stored) != (self._owed_blocks, self._table_tokens) or self.unpromised_blocks < 0:
            raise BlockPoolError(
                f"the tables owe {owed} blocks and store {stored} tokens; the books say "
                f"{self._owed_blocks} and {self._table_tokens}, with {self._pool.num_available} blocks to hand out"
            )

    def _promise(self, table: BlockTable, tokens: int, capacity: int | None) -> bool:
        """Makes sure that the table can grow to `tokens` slots; false where there are not blocks enough for that."""
        extra = self.blocks_for(tokens) - table.promised_blocks
        if extra <= 0:
            return True
        if not self.has_room(FROM_SCRATCH, extra * self.block_size, capacity=capacity):
            return False
        table.promised_blocks += extra
        self._owed_blocks += extra
        return True

    def _swap_in(self, owner: str, table: BlockTable) -> None:
        slots = self.host.slots_of(owner)
        count = len(slots)
        table.blocks.extend(self._pool.take(owner, count))
        self._copies.extend(map(BlockCopy, (owner,) * count, (CopyKind.SWAP_IN,) * count, slots, table.blocks))
        self.host.give_back(owner)

    def _take_blocks(self, owner: str, table: BlockTable, tokens: int, now_ns: int) -> None:
        missing = self.blocks_for(tokens) - len(table.blocks)
        if missing > table.promised_blocks - len(table.blocks):
            raise BlockPoolError(f"request {owner} grew to {tokens} tokens, past its {table.promised_blocks} blocks")
        if table.tail_is_foreign:
            self._copy_tail(owner, table)
        table.append(self._pool.take(owner, missing) if missing > 0 else (), self.block_size, now_ns)
        self._owed_blocks -= max(0, missing)

    def _copy_tail(self, owner: str, table: BlockTable) -> None:
        """The copy-on-write: what is written behind the shared part must not reach those who share the block."""
        shared = table.blocks[-1]
        [table.blocks[-1]] = self._pool.take(owner, 1)
        self._copies.append(BlockCopy(owner, CopyKind.FORK, shared, table.blocks[-1]))
        self._pool.give_back(owner, [shared])
        table.tail_is_foreign = False
        self._owed_blocks -= 1
