"""Block slots in host memory, where preempted requests wait."""

from __future__ import annotations

from quantgate_engine.kv.block_pool import BlockPoolError
from quantgate_engine.kv.holding import KVHolding


class HostPool:
    """Slots 0 .. num_slots - 1, each free or holding one block of one request that was swapped out."""

    def __init__(self, num_slots: int) -> None:
        self.num_slots = num_slots
        self._free = list(range(num_slots - 1, -1, -1))
        self._taken: dict[str, tuple[int, ...]] = {}
        self._since_ns: dict[str, int] = {}

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_held(self) -> int:
        return self.num_slots - len(self._free)

    def take(self, owner: str, count: int, now_ns: int) -> tuple[int, ...]:
        """`count` slots, of which there have to be enough."""
        if count > len(self._free) or owner in self._taken:
            raise BlockPoolError(f"request {owner} asked for {count} host slots, and {len(self._free)} are free")
        slots = tuple(self._free.pop() for _ in range(count))
        self._taken[owner], self._since_ns[owner] = slots, now_ns
        return slots

    def slots_of(self, owner: str) -> tuple[int, ...]:
        return self._taken.get(owner, ())

    def give_back(self, owner: str) -> None:
        """Frees whatever `owner` has here; nothing where it has nothing."""
        self._free.extend(reversed(self._taken.pop(owner, ())))
        self._since_ns.pop(owner, None)

    def holdings(self, now_ns: int) -> list[KVHolding]:
        """What each owner has here."""
        held = [(owner, len(slots), (now_ns - self._since_ns[owner]) / 1e9) for owner, slots in self._taken.items()]
        return [KVHolding(owner, "swapped", blocks, seconds, blocks * seconds) for owner, blocks, seconds in held]

    def check(self) -> None:
        """Raises BlockPoolError unless each slot is free or held, once."""
        everywhere = sorted([*self._free, *(slot for slots in self._taken.values() for slot in slots)])
        if everywhere != list(range(self.num_slots)):
            raise BlockPoolError(
                f"free ({self.num_free}) and held host slots are not each of the {self.num_slots} once"
            )
