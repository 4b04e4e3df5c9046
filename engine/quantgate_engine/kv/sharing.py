"""What a request can take over from others in place of computing it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quantgate_engine.kv.kv_manager import KVManager
from quantgate_engine.kv.prefix_chain import PrefixChain
from quantgate_engine.kv.start import FROM_SCRATCH, Start
from quantgate_engine.request import AbortCause, Request


class PrefixSharing:
    """Finds the start of each request: its own blocks on the host, those of the request it forks, or cached prefixes.

    Whatever is taken over, the last known token is always computed: its logits are what the next one is drawn from.
    Where another request is computing the very prefix that this one needs next, it is worth waiting for
    (`is_on_its_way`); else requests that arrive together would compute their common prefix side by side.
    """

    def __init__(self, kv: KVManager, requests: Mapping[str, Request], *, by_prefix: bool) -> None:
        self._kv = kv
        self._requests = requests
        self._by_prefix = by_prefix
        self._pending: set[bytes] = set()
        self._pending_of: dict[str, bytes] = {}

    def hash_prompt(self, request: Request) -> None:
        """Hashes a new prompt's full blocks, so that no step has to; any thread, before anybody else has the request.

        It reads what never changes (the root of its chain, the tokens) and writes to the request alone.
        """
        if self._by_prefix:
            chain = self._chain_of(request)
            if chain.num_blocks:
                chain.digest(chain.num_blocks - 1)

    def start_of(self, request: Request) -> Start:
        """The longest start that is there now."""
        if self._kv.host.slots_of(request.request_id):
            return Start(tokens=request.num_computed_tokens, swapped=True)
        forked, cached = self._forked(request), self._cached(request)
        return forked if forked.tokens > cached.tokens else cached

    def ways_to_start(self, start: Start) -> tuple[Start, ...]:
        """`start`; where its last block would have to be copied, also without that one, which takes a block less."""
        if start.swapped or start.tokens % self._kv.block_size == 0:
            return (start,)
        count = start.tokens // self._kv.block_size
        return start, Start(count * self._kv.block_size, start.shared[:count], cached=start.cached)

    def is_on_its_way(self, request: Request, start: Start) -> bool:
        """Whether somebody else is computing what would make `start` longer a little later."""
        if start.swapped:
            return False
        parent = self._parent(request)
        if parent is not None:
            return parent.num_computed_tokens < _common_tokens(request, parent)
        chain, place = request.prefix_chain, start.tokens // self._kv.block_size
        if chain is None or place >= chain.num_blocks or chain.digest(place) not in self._pending:
            return False
        return len(self._kv.prefixes.find(chain)) <= place

    def opened(self, request: Request, start: Start) -> None:
        """The request has started: the full blocks behind `start` are on their way, each in its turn."""
        if self._by_prefix:
            self._expect(request, start.tokens)

    def computed(self, prefills: Iterable[Request]) -> None:
        """Lets others find every full block that a step's prefills have computed.

        The blocks of an answer follow all at once when its request lets go of them (`closed`): one by one they would
        cost several times as much, and hardly anybody asks for them while the answer is being written.
        """
        if not self._by_prefix:
            return
        for request in prefills:
            self._register(request)
            self._arrived(request)
            self._expect(request, request.num_computed_tokens)

    def closed(self, request: Request) -> None:
        """Nothing more of the request is on its way; what it has computed others can find. Call it before its release.

        Of one that ended by an error they find no more than before: nobody knows what lies in its blocks.
        """
        self._arrived(request)
        if self._by_prefix and request.abort_cause is not AbortCause.ERROR:
            self._register(request)

    def _register(self, request: Request) -> None:
        full = request.num_computed_tokens // self._kv.block_size
        if full:
            self._kv.register(request.request_id, self._chain_of(request), full)

    def _expect(self, request: Request, num_computed: int) -> None:
        """The next full block is on its way. Whoever waits for one behind it has found all before that one first.

        Of two that compute the same block, the first stands for both.
        """
        place, chain = num_computed // self._kv.block_size, self._chain_of(request)
        if place < chain.num_blocks:
            digest = chain.digest(place)
            if digest not in self._pending:
                self._pending.add(digest)
                self._pending_of[request.request_id] = digest

    def _arrived(self, request: Request) -> None:
        digest = self._pending_of.pop(request.request_id, None)
        if digest is not None:
            self._pending.remove(digest)

    def _chain_of(self, request: Request) -> PrefixChain:
        """The request's chain, with all of its full blocks."""
        prefixes, chain = self._kv.prefixes, request.prefix_chain
        if chain is None:
            chain = request.prefix_chain = prefixes.chain(request.terms.cache_salt)
        prefixes.lengthen(chain, request.tokens_between, request.num_tokens)
        return chain

    def _cached(self, request: Request) -> Start:
        if not self._by_prefix:
            return FROM_SCRATCH
        blocks = self._kv.prefixes.find(self._chain_of(request))
        return self._start(request, len(blocks) * self._kv.block_size, tuple(blocks), cached=True)

    def _parent(self, request: Request) -> Request | None:
        """The live request that this one forks. One that came later has only taken over the id: two that wait for
        each other would wait for ever.
        """
        parent = self._requests.get(request.terms.fork_of) if request.terms.fork_of is not None else None
        return parent if parent is not None and parent.rank < request.rank else None

    def _forked(self, request: Request) -> Start:
        parent = self._parent(request)
        if parent is None:
            return FROM_SCRATCH
        tokens = min(parent.num_computed_tokens, _common_tokens(request, parent))
        blocks = self._kv.blocks_of(parent.request_id)[: self._kv.blocks_for(tokens)]
        return self._start(request, tokens, blocks) if blocks else FROM_SCRATCH

    def _start(self, request: Request, tokens: int, blocks: tuple[int, ...], *, cached: bool = False) -> Start:
        tokens = min(tokens, request.num_tokens - 1)
        return Start(tokens, blocks[: self._kv.blocks_for(tokens)], cached=cached)


def _common_tokens(request: Request, parent: Request) -> int:
    """Length of the common prefix, without the request's last token, which it computes itself."""
    limit = min(request.num_tokens - 1, parent.num_tokens)
    mine, theirs = request.tokens_between(0, limit), parent.tokens_between(0, limit)
    if mine == theirs:
        return limit
    return next(position for position in range(limit) if mine[position] != theirs[position])
