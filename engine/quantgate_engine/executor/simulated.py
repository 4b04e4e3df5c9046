"""An executor without a model: fixed costs on a virtual clock and tokens that anybody can compute again."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.clock import VirtualClock
from quantgate_engine.executor.base import BlockCopy, CopyKind, SampledToken, ScheduledSequence


@dataclass(frozen=True, slots=True)
class StepCosts:
    """A step takes base + prefill tokens x per_prefill_token + decoding requests x per_decode_request nanoseconds.

    A block swapped to the host or back costs per_swapped_block on top; copies within the device are too short to count.
    """

    base_ns: int = 1_000_000
    per_prefill_token_ns: int = 100_000
    per_decode_request_ns: int = 500_000
    per_swapped_block_ns: int = 0

    def duration_ns(self, prefill_tokens: int, decode_requests: int) -> int:
        return self.base_ns + prefill_tokens * self.per_prefill_token_ns + decode_requests * self.per_decode_request_ns


def simulated_token(previous_token_id: int, position: int, vocab_size: int, seed: int = 0) -> int:
    """The token drawn after `previous_token_id` at `position`: of these alone, whoever else is in the batch.

    The multipliers are odd primes, so that neighbouring positions and seeds give unlike tokens.
    """
    return (previous_token_id * 7_919 + position * 104_729 + seed * 1_299_709 + 1) % vocab_size


class SimulatedExecutor:
    """Advances `clock` by the step's cost. A sequence of one token after the first position counts as a decode.

    The default vocabulary is larger than any model's, so that every model's prompts can be simulated.
    """

    def __init__(
        self,
        clock: VirtualClock,
        costs: StepCosts | None = None,
        *,
        num_blocks: int = 1024,
        block_size: int = 16,
        max_context_tokens: int = 2048,
        vocab_size: int = 1 << 18,
        eos_token_ids: tuple[int, ...] = (),
        cache_identity: tuple[str, ...] = ("simulated",),
    ) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.max_context_tokens = max_context_tokens
        self.eos_token_ids = eos_token_ids
        self.cache_identity = cache_identity
        self._clock = clock
        self._costs = costs if costs is not None else StepCosts()
        self.vocab_size = vocab_size

    def copy_blocks(self, copies: tuple[BlockCopy, ...]) -> None:
        swapped = sum(copy.kind is not CopyKind.FORK for copy in copies)
        self._clock.advance_ns(swapped * self._costs.per_swapped_block_ns)

    def execute(self, sequences: tuple[ScheduledSequence, ...]) -> list[SampledToken | None]:
        decode_requests = sum(len(sequence.token_ids) == 1 and sequence.start_position > 0 for sequence in sequences)
        rows = sum(len(sequence.token_ids) for sequence in sequences)
        self._clock.advance_ns(self._costs.duration_ns(rows - decode_requests, decode_requests))
        return [self._draw(sequence) for sequence in sequences]

    def _draw(self, sequence: ScheduledSequence) -> SampledToken | None:
        if not sequence.sample:
            return None
        if sequence.forced_token_id is not None:
            return SampledToken(sequence.forced_token_id)
        position = sequence.start_position + len(sequence.token_ids)
        token_id = simulated_token(sequence.token_ids[-1], position, self.vocab_size, sequence.params.seed)
        return SampledToken(token_id)
