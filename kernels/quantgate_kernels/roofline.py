"""Bounds: what steps must at least read and compute, over what a device reads and computes at most.

S. Williams, A. Waterman, D. Patterson: Roofline, CACM 52(4), 2009. Pure functions of shapes and limits; a bound is
never called a measurement of an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Width = Literal["16-bit", "int8", "float32"]
"""Of what is multiplied; sums are wider."""

LimitedBy = Literal["memory", "arithmetic"]


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """The most that was measured of a device, with `threads` threads (see `device_limits.measure_device_limits`).

    read_bytes_per_s: read from memory. The others: operations per second, a multiply-add being two, of products of
    16-bit, int8 and float32 numbers; None where the device was not found to multiply such numbers.
    measured_by: for each of these four, what reached it: `cpp` (compiled probes) or `torch` (its operators).
    """

    read_bytes_per_s: float
    matmul_ops_per_s: float
    int8_ops_per_s: float | None
    float32_ops_per_s: float
    threads: int
    measured_by: Mapping[str, str]

    def ops_per_s(self, width: Width) -> float | None:
        by_width: dict[Width, float | None] = {
            "16-bit": self.matmul_ops_per_s,
            "int8": self.int8_ops_per_s,
            "float32": self.float32_ops_per_s,
        }
        return by_width[width]


@dataclass(frozen=True, slots=True)
class Work:
    """What must at least be done: bytes read from memory, and operations by the width of what is multiplied."""

    bytes_read: float
    operations: Mapping[Width, float]


@dataclass(frozen=True, slots=True)
class Bound:
    """Of work that was done piece after piece (step after step): no device of these limits is faster.

    seconds: reading and computing go on side by side, so that each piece takes the longer of the two. memory_seconds,
    compute_seconds: what either would take alone.
    """

    seconds: float
    memory_seconds: float
    compute_seconds: float
    bytes_read: float
    operations: Mapping[Width, float]

    @property
    def limited_by(self) -> LimitedBy:
        """Which of the two takes longer over all the work."""
        return "memory" if self.memory_seconds >= self.compute_seconds else "arithmetic"


def bound_of(pieces: Iterable[Work], limits: DeviceLimits) -> Bound | None:
    """None where a piece has operations of a width for which the device has no measured limit."""
    seconds = memory_seconds = compute_seconds = bytes_read = 0.0
    operations: dict[Width, float] = {}
    for piece in pieces:
        memory, compute = piece.bytes_read / limits.read_bytes_per_s, 0.0
        for width, count in piece.operations.items():
            per_second = limits.ops_per_s(width)
            if per_second is None:
                return None
            compute += count / per_second
            operations[width] = operations.get(width, 0.0) + count
        seconds += max(memory, compute)
        memory_seconds += memory
        compute_seconds += compute
        bytes_read += piece.bytes_read
    return Bound(seconds, memory_seconds, compute_seconds, bytes_read, operations)


@dataclass(frozen=True, slots=True)
class DecoderWork:
    """What the steps of a loaded decoder must at least read and compute.

    linear_bytes: weights of the linear layers, scales included; head_bytes: of the head, for steps that draw tokens. A
    kernel set that screens its head reads about half of it in greedy steps of few rows; the bound is without a screen.
    kv_bytes_per_token: keys and values of all layers. linear_parameters, head_parameters: weights that each row, and
    each row that draws a token, is multiplied by. query_size: heads * head_dim.
    windows: (how far layers look back, how many of them do); None is the whole context.
    linear_width: of what the linear layers multiply; width: of what everything else does.

    Embedding, norms, biases, activations and all that is written are left out: under a hundredth of the rest.
    """

    linear_bytes: int
    head_bytes: int
    kv_bytes_per_token: int
    linear_parameters: int
    head_parameters: int
    query_size: int
    windows: tuple[tuple[int | None, int], ...]
    linear_width: Width
    width: Width

    def decode_step(self, sequences: int, context_tokens: int) -> Work:
        """One token for each of `sequences`, whose contexts are `context_tokens` together, the new tokens among them.

        bytes = linear weights + head + keys and values seen; operations = 2 * (linear + head parameters) * sequences
        + 4 * heads * head_dim * tokens seen, over the layers (scores and weighted sum, 2 operations each).
        """
        seen = self._over_layers(lambda window: _at_most(context_tokens, window))
        return Work(
            self.linear_bytes + self.head_bytes + self._kv_bytes(seen),
            self._operations(rows=sequences, draws=sequences, pairs=seen),
        )

    def prefill_step(self, tokens: int, sequences: int, context_tokens: int, draws: int) -> Work:
        """`tokens` new ones of `sequences`, whose contexts are `context_tokens` together, the new tokens among them.

        draws: sequences that draw a token at the end of the step. As `decode_step`; of how tokens and contexts are
        spread over several sequences, what takes least.
        """
        earlier = context_tokens - tokens
        pairs = self._over_layers(lambda window: _least_pairs(tokens, sequences, earlier, window))
        # The first of the new tokens, which looks furthest back, is one of its own window.
        seen = self._over_layers(lambda window: _at_most(earlier, None if window is None else window - 1))
        return Work(
            self.linear_bytes + (self.head_bytes if draws else 0) + self._kv_bytes(seen),
            self._operations(rows=tokens, draws=draws, pairs=pairs),
        )

    def _operations(self, rows: float, draws: float, pairs: float) -> dict[Width, float]:
        linear = 2.0 * self.linear_parameters * rows
        others = 2.0 * self.head_parameters * draws + 4.0 * self.query_size * pairs
        if self.linear_width == self.width:
            return {self.width: linear + others}
        return {self.linear_width: linear, self.width: others}

    def _over_layers(self, of_window: Callable[[int | None], float]) -> float:
        return sum(layers * of_window(window) for window, layers in self.windows)

    def _kv_bytes(self, seen: float) -> float:
        """seen: tokens, summed over the layers."""
        return self.kv_bytes_per_token * seen / sum(layers for _, layers in self.windows)


def _at_most(tokens: float, window: int | None) -> float:
    """Tokens of several contexts together that a window leaves at least: those of one, if all were its own."""
    return tokens if window is None else min(tokens, window)


def _least_pairs(tokens: int, sequences: int, earlier: int, window: int | None) -> float:
    """Pairs of a new token and one that it sees, at least: causal pairs are fewest where lengths are equal."""
    among_new = sequences * _causal_pairs(tokens / sequences, window)
    if window is not None:
        return among_new
    # All of one sequence's new tokens see its past; of several, perhaps one alone has a past, and one new token.
    return among_new + earlier * (tokens if sequences == 1 else 1)


def _causal_pairs(tokens: float, window: int | None) -> float:
    """Of the first tokens of a context: the n-th sees n, and no more than the window."""
    climbing = tokens if window is None else min(tokens, window)
    return climbing * (climbing + 1) / 2 + (tokens - climbing) * climbing
