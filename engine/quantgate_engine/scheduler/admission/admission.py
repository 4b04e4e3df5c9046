"""Who may start: caps, estimates and the watermark, asked in this order."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from quantgate_engine.counted import counted
from quantgate_engine.kv.kv_manager import KVManager
from quantgate_engine.kv.sharing import PrefixSharing
from quantgate_engine.kv.start import Start
from quantgate_engine.request import Request
from quantgate_engine.scheduler.admission.caps import Caps
from quantgate_engine.scheduler.admission.crowd import Crowd
from quantgate_engine.scheduler.admission.estimators import ESTIMATORS
from quantgate_engine.scheduler.admission.over_cap import OVER_CAP_POLICIES
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.shown import shown, shown_name


class Admission:
    """Says of each request whether it can ever run, and whether it can start now.

    With nothing active neither watermark nor estimate holds a request back: it has the pool to itself, and `refusal`
    has made sure that it fits, so the engine can never stand still with requests that wait.
    """

    def __init__(
        self, settings: AdmissionSettings, caps: Caps, kv: KVManager, sharing: PrefixSharing, vocab_size: int
    ) -> None:
        self.caps = caps
        self.settings = settings
        self.estimator = ESTIMATORS[settings.estimator](settings)
        self._policy = OVER_CAP_POLICIES[settings.over_cap](settings)
        self._kv = kv
        self._sharing = sharing
        self._vocab_size = vocab_size
        self._watermark_blocks = int(settings.watermark * kv.num_blocks)

    @property
    def capacity_blocks(self) -> int:
        """Blocks that requests may hold: the pool's, or what the cap on KV tokens leaves of them."""
        cap = self.caps.max_kv_tokens
        return self._kv.num_blocks if cap is None else min(self._kv.num_blocks, cap // self._kv.block_size)

    @property
    def max_sequence_tokens(self) -> int:
        """Prompt plus output of the longest request that can ever run: by its context, and alone in the KV cache.

        The last token is never stored, so a sequence may be one longer than its slots.
        """
        return min(self.caps.max_context_tokens, self.capacity_blocks * self._kv.block_size + 1)

    def takes_whole(self, request: Request) -> bool:
        """Whether nothing of the request is refused or cut, by the caps of this moment; any thread may ask."""
        lowest, highest = request.prompt_range
        tokens = len(request.prompt_token_ids) + request.params.max_tokens
        return lowest >= 0 and highest < self._vocab_size and tokens <= self.max_sequence_tokens

    def output_room(self, request: Request) -> int:
        """The most output tokens, up to the request's `max_tokens`, with which it can ever run; at least 1.

        It is for requests that leave the length to the engine. Where the policy would leave out the oldest turns, it
        is what the rest has room for. `request` is changed by the question: make one for it.
        """
        asked, prompt = request.params.max_tokens, len(request.prompt_token_ids)
        self._policy.fit_context(request, self.max_sequence_tokens)
        if len(request.prompt_token_ids) + request.params.max_tokens <= self.max_sequence_tokens:
            return request.params.max_tokens
        return max(1, min(asked, self.max_sequence_tokens - prompt))

    def refusal(self, request: Request) -> str | None:
        """Why the request could never run, with the numbers; None where it can. Degrades it, if that is the policy."""
        if not request.prompt_token_ids:
            return f"Request {shown_name(request.request_id)} has an empty prompt; expected at least 1 token."
        params = request.params
        for place, token_ids in (
            ("its prompt", request.prompt_range),
            ("stop_token_ids", params.stop_token_ids),
            ("forced_token_ids", params.forced_token_ids),
            ("logit_bias", params.logit_bias),
        ):
            if token_ids and (min(token_ids) < 0 or max(token_ids) >= self._vocab_size):
                lowest, highest = shown(min(token_ids)), shown(max(token_ids))
                return (
                    f"Request {shown_name(request.request_id)} has token ids from {lowest} to {highest} in {place}; "
                    f"expected 0 to {self._vocab_size - 1}, the model's vocabulary."
                )
        self._policy.fit_context(request, self.max_sequence_tokens)
        prompt, output = len(request.prompt_token_ids), request.params.max_tokens
        needed = self._kv.blocks_for(request.max_stored_tokens)
        if prompt + output <= self.caps.max_context_tokens and needed <= self.capacity_blocks:
            return None
        sizes = (
            f"Request {shown_name(request.request_id)} can never run: {counted(prompt, 'prompt token')} and "
            f"max_tokens {output}"
        )
        if prompt + output > self.caps.max_context_tokens:
            return (
                f"{sizes} make {prompt + output}, above the context limit of {self.caps.max_context_tokens}; "
                "shorten the prompt or lower max_tokens."
            )
        if self.capacity_blocks < self._kv.num_blocks:
            # Of the two limits the one that is reached first: a larger pool alone would help nobody.
            return (
                f"{sizes} need {needed * self._kv.block_size} KV tokens in blocks, above the cap max_kv_tokens of "
                f"{self.caps.max_kv_tokens}; raise the cap, shorten the prompt or lower max_tokens."
            )
        return (
            f"{sizes} need {counted(needed, 'KV block')} of {counted(self._kv.block_size, 'token')}, and the pool has "
            f"{self._kv.num_blocks}; raise num_kv_blocks, shorten the prompt or lower max_tokens."
        )

    def change_caps(self, caps: Caps) -> None:
        """Sessions between two turns give way where the new cap on KV tokens leaves no room for them."""
        self.caps = caps
        while self._kv.committed_blocks > self.capacity_blocks and len(self._kv.sessions):
            self._kv.sessions.drop_oldest()

    def turned_away(
        self, request: Request, running: Callable[[], list[Request]], waiting: Callable[[], list[Request]]
    ) -> str | None:
        """Why a request that just arrived is rejected for want of room, where the policy lets nobody wait.

        Those that arrived just before it, or were preempted, are `waiting`: their room is as good as taken. Both are
        asked for only where the policy needs them, because where requests may wait there can be thousands.
        """
        if self._policy.may_wait:
            return None
        ahead = waiting()
        before = self.estimator.crowd([*running(), *ahead])
        if before.size >= self.caps.max_active_requests:
            return (
                f"Request {shown_name(request.request_id)} was rejected: every place is taken (active or about to be: "
                f"{before.size}, max_active_requests: {self.caps.max_active_requests}); send it again later."
            )
        taken = sum(self._kv.blocks_for(self.estimator.promise(other)) for other in ahead)
        if self._fitting_start(request, self._sharing.start_of(request), before, taken) is None:
            under_cap = self.capacity_blocks - self._kv.committed_blocks
            free = min(self._kv.unpromised_blocks, under_cap) - taken
            cap = f", max_kv_tokens: {self.caps.max_kv_tokens}" if under_cap < self._kv.unpromised_blocks else ""
            return (
                f"Request {shown_name(request.request_id)} was rejected: it finds too few KV blocks to start (needed: "
                f"{self._kv.blocks_for(self.estimator.promise(request))}, free: {max(0, free)}, kept back of those: "
                f"{self._watermark_blocks}{cap}); send it again later."
            )
        return None

    def start_now(self, request: Request, start: Start, running: Crowd) -> Start | None:
        """`start`, or as much of it as there is room for, where the request (or a shortened one) fits now.

        None where it does not fit.
        """
        fitting = self._fitting_start(request, start, running)
        if fitting is None and self._policy.shorten(request, self._output_room(request, start)):
            fitting = self._fitting_start(request, start, running)
        return fitting

    def admit(self, request: Request, start: Start, now_ns: int) -> None:
        """Opens the request's table; call it only with what `start_now` returned."""
        self._kv.open(request.request_id, self.estimator.promise(request), now_ns, start)
        self._sharing.opened(request, start)
        if request.admitted_ns is None:
            request.admitted_ns = now_ns
            request.cached_prompt_tokens = min(start.tokens, len(request.prompt_token_ids))
        request.num_computed_tokens = start.tokens

    def _fitting_start(self, request: Request, start: Start, running: Crowd, taken_blocks: int = 0) -> Start | None:
        promise = self.estimator.promise(request)
        # A sequence's last block is half empty on average, so fewer slots can be filled than there are.
        usable = self.capacity_blocks * self._kv.block_size - (running.size + 1) * self._kv.block_size // 2
        if running.size and running.peak_with(request) > usable:
            return None
        spare = taken_blocks + self._watermark_blocks if running.size else 0
        # One that is alone may go on also where the cap was lowered below it; sessions give way to it before that.
        capacities = (self.capacity_blocks - taken_blocks,) if running.size else (self.capacity_blocks, None)
        for capacity, attempt in itertools.product(capacities, self._sharing.ways_to_start(start)):
            if self._kv.has_room(attempt, promise, spare, capacity):
                return attempt
        return None

    def _output_room(self, request: Request, start: Start) -> int:
        """Output tokens that the free blocks leave, as far as the promise is what counts."""
        free = min(self._kv.unpromised_blocks, self.capacity_blocks - self._kv.committed_blocks)
        slots = (free - self._watermark_blocks + len(start.shared)) * self._kv.block_size
        return slots + 1 - len(request.prompt_token_ids)
