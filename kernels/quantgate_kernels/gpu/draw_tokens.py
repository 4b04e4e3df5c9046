"""One token for each row of logits: the greatest sum of scaled logit and noise (Gumbel-max), or the greatest logit."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from quantgate_kernels.gpu.gumbel_noise import TOKENS_OF_COUNTER, gumbel_noise
from quantgate_kernels.gpu.launch_table import BEST, DRAW, padded


@triton.jit(do_not_specialize_on_alignment=["temperatures", "least", "seeds", "positions"])
def draw_tokens_kernel(
    logits: tl.tensor,
    greatest: tl.tensor,
    temperatures: tl.tensor,
    least: tl.tensor,
    seeds: tl.tensor,
    positions: tl.tensor,
    sums: tl.tensor,
    tokens: tl.tensor,
    VOCABULARY: tl.constexpr,
    TILE: tl.constexpr,
) -> None:
    """One program: a row and TILE tokens, of which it finds the one that wins and its sum.

    Bound: reads 4 bytes a token and does some 40 multiplications of 64 bits for each eight, which take longer.
    """
    row = tl.program_id(0).to(tl.int64)
    tile = tl.program_id(1)
    token = tile * TILE + tl.arange(0, TILE)
    there = token < VOCABULARY
    temperature = tl.load(temperatures + row)
    # Differences to the greatest are at most 0, so that the smallest temperatures lead to the greedy token.
    scaled = tl.load(logits + row * VOCABULARY + token, mask=there, other=float("-inf")) - tl.load(greatest + row)
    if temperature > 0:
        scaled = tl.div_rn(scaled, temperature)
        seed = tl.load(seeds + row).to(tl.uint64)
        position = tl.load(positions + row).to(tl.uint64)
        noise = gumbel_noise(seed, position, tile * (TILE // TOKENS_OF_COUNTER), TILE // TOKENS_OF_COUNTER)
        scaled = tl.where(scaled < tl.load(least + row), float("-inf"), scaled + noise)
    best, place = tl.max(scaled, 0, return_indices=True)
    at = row * tl.num_programs(1) + tile
    tl.store(sums + at, best)
    tl.store(tokens + at, tile * TILE + place)


@triton.jit(do_not_specialize=["tiles"])
def best_token_kernel(
    sums: tl.tensor, tokens: tl.tensor, drawn: tl.tensor, tiles: tl.tensor, TILES_PAD: tl.constexpr
) -> None:
    """One program: a row. Bound: reads 8 bytes a tile of its tokens."""
    row = tl.program_id(0).to(tl.int64)
    tile = tl.arange(0, TILES_PAD)
    best = tl.load(sums + row * tiles + tile, mask=tile < tiles, other=float("-inf"))
    place = tl.argmax(best, 0)
    tl.store(drawn + row, tl.load(tokens + row * tiles + place).to(tl.int64))


def draw_tokens(logits: Tensor, temperatures: Tensor, min_p: Tensor, seeds: Tensor, positions: Tensor) -> Tensor:
    """logits float32 [R, vocab], contiguous, their greatest finite -> int64 [R].

    For each row: temperature float32, 0 for the greatest logit; min_p float32, 0 where it cuts nothing; int64 seed and
    position, of which the noise is made. Of equal sums the first token wins. Each row depends on itself alone.
    top_k and top_p, which ask for the order of a row's tokens, are not cut here.
    """
    rows, vocabulary = logits.shape
    tiles = triton.cdiv(vocabulary, DRAW.tile)
    sums = torch.empty(rows, tiles, dtype=torch.float32, device=logits.device)
    tokens = torch.empty(rows, tiles, dtype=torch.int32, device=logits.device)
    drawn = torch.empty(rows, dtype=torch.int64, device=logits.device)
    draw_tokens_kernel[(rows, tiles)](
        logits,
        logits.amax(1),
        temperatures,
        min_p.log(),
        seeds,
        positions,
        sums,
        tokens,
        VOCABULARY=vocabulary,
        TILE=DRAW.tile,
        **DRAW.options(),
    )
    best_token_kernel[(rows,)](sums, tokens, drawn, tiles, TILES_PAD=padded(tiles), **BEST.options())
    return drawn
