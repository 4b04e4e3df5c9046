"""How the context of a decode is divided among programs; no torch, no Triton."""

from __future__ import annotations

FIXED_SPLIT = 256
"""Tokens of a split in the deterministic mode, whatever the batch: the order of a row's sums is then its own."""

SMALLEST_SPLIT = 128
"""A multiple of every tile in the launch table; fewer tokens cost more to merge than to read."""

WARPS_PER_PROCESSOR = 8
"""Loads of so many are under way at once on each of the device's processors."""


def split_size(sequences: int, kv_heads: int, longest: int, processors: int, num_warps: int) -> int:
    """Tokens of a split so that programs of `num_warps` share the longest context and keep all processors at work."""
    programs = processors * WARPS_PER_PROCESSOR // num_warps
    wanted = max(1, programs // max(1, sequences * kv_heads))
    tokens = -(-longest // wanted)
    return max(SMALLEST_SPLIT, -(-tokens // SMALLEST_SPLIT) * SMALLEST_SPLIT)


def split_count(longest: int, size: int, window: int | None, tile: int) -> int:
    """The most splits that a context of up to `longest` tokens has: what a window hides is in none of them."""
    seen = longest if window is None else min(longest, window + tile - 1)
    return max(1, -(-seen // size))
