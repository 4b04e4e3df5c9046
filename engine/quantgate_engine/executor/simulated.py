"""An executor without a model: costs on a virtual clock and tokens that anybody can compute again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from quantgate_engine.clock import VirtualClock
from quantgate_engine.executor.base import BlockCopy, CopyKind, SampledToken, ScheduledSequence


class StepShape(NamedTuple):
    """What the time of a step depends on. A sequence of one token after the first position counts as a decode.

    prefill_tokens: tokens of the others; prefill_pairs: pairs of such a token and one that it attends to, itself
    included; decode_context_tokens: tokens that the decoding requests attend to.
    """

    prefill_tokens: int
    prefill_pairs: int
    decode_requests: int
    decode_context_tokens: int


def shape_of(sequences: Iterable[ScheduledSequence]) -> StepShape:
    prefill_tokens = prefill_pairs = decode_requests = decode_context_tokens = 0
    for sequence in sequences:
        count, start = len(sequence.token_ids), sequence.start_position
        if count == 1 and start > 0:
            decode_requests += 1
            decode_context_tokens += start + 1
        else:
            prefill_tokens += count
            prefill_pairs += count * start + count * (count + 1) // 2
    return StepShape(prefill_tokens, prefill_pairs, decode_requests, decode_context_tokens)


@dataclass(frozen=True, slots=True)
class StepCosts:
    """A step takes base_ns and, for each part of its shape, that many times the part's cost, in nanoseconds.

    A block swapped to the host or back costs per_swapped_block on top; copies within the device are too short to count.
    `benchmarks/practice_costs.py` fits the costs to measured steps of an engine.
    """

    base_ns: int = 1_000_000
    per_prefill_token_ns: int = 100_000
    per_decode_request_ns: int = 500_000
    per_swapped_block_ns: int = 0
    per_prefill_pair_ns: float = 0.0
    per_decode_context_token_ns: float = 0.0

    def duration_ns(self, shape: StepShape) -> int:
        attention_ns = (
            shape.prefill_pairs * self.per_prefill_pair_ns
            + shape.decode_context_tokens * self.per_decode_context_token_ns
        )
        return (
            self.base_ns
            + shape.prefill_tokens * self.per_prefill_token_ns
            + shape.decode_requests * self.per_decode_request_ns
            + round(attention_ns)
        )


def simulated_token(previous_token_id: int, position: int, vocab_size: int, seed: int = 0) -> int:
    """The token drawn after `previous_token_id` at `position`: of these alone, whoever else is in the batch.

    The multipliers are odd primes, so that neighbouring positions and seeds give unlike tokens.
    """
    return (previous_token_id * 7_919 + position * 104_729 + seed * 1_299_709 + 1) % vocab_size


class SimulatedExecutor:
    """Advances `clock` by the step's cost.

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
        self._clock.advance_ns(self._costs.duration_ns(shape_of(sequences)))
        return [self._draw(sequence) for sequence in sequences]

    def _draw(self, sequence: ScheduledSequence) -> SampledToken | None:
        if not sequence.sample:
            return None
        if sequence.forced_token_id is not None:
            return SampledToken(sequence.forced_token_id)
        position = sequence.start_position + len(sequence.token_ids)
        token_id = simulated_token(sequence.token_ids[-1], position, self.vocab_size, sequence.params.seed)
        return SampledToken(token_id)
