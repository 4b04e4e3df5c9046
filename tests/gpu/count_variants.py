"""`python tests/gpu/count_variants.py sm90`: launches as steps make them; counts what Triton compiled for them."""

from __future__ import annotations

import itertools
import json
import sys
from collections import defaultdict

import torch

from quantgate_kernels.gpu.ahead.catalogue import VOCABULARY, meta, meta_batch, meta_cache
from quantgate_kernels.gpu.ahead.compile_only import compile_only
from quantgate_kernels.gpu.ahead.linear_catalogue import WordForm, meta_int8, meta_words
from quantgate_kernels.gpu.copy_blocks import copy_blocks
from quantgate_kernels.gpu.decode_attention import decode_attention
from quantgate_kernels.gpu.dequantize import dequantize
from quantgate_kernels.gpu.draw_tokens import draw_tokens
from quantgate_kernels.gpu.linear_int8 import linear_int8
from quantgate_kernels.gpu.linear_words import linear_words
from quantgate_kernels.gpu.prefill_attention import prefill_attention
from quantgate_kernels.gpu.rms_norm import rms_norm
from quantgate_kernels.gpu.rotate_and_write import rotate_and_write
from quantgate_kernels.gpu.silu_and_mul import silu_and_mul
from quantgate_kernels.gpu.split_sizes import split_size

HEADS, KV_HEADS, HEAD_DIM = 32, 8, 128
BATCHES = [(1, 1), (1, 16), (1, 17), (2, 5000), (3, 40), (16, 8192), (17, 300), (250, 2000)]
"""Sequences and the longest context, odd ones, ones and multiples of 16 among them."""
WEIGHT = 4096, 4096
ROWS = [1, 2, 16, 17, 127, 128, 2048, 2049]


def decode(architecture: str) -> None:
    for sequences, longest in BATCHES:
        q = meta(sequences, HEADS, HEAD_DIM)
        batch = meta_batch((1,) * sequences, (longest,) * sequences)
        chosen = meta(sequences, dtype=torch.int32)
        split = split_size(sequences, KV_HEADS, longest, processors=132, num_warps=4)
        cache = meta_cache(HEAD_DIM, torch.bfloat16)
        decode_attention(q, cache, batch, chosen, longest, split, 0.1, None, torch.empty_like(q), architecture)


def prefill(architecture: str) -> None:
    for rows, context, tiles in ((2, 2, 1), (16, 16, 1), (17, 300, 1), (2048, 8192, 64), (2049, 5000, 65)):
        q, cache = meta(rows, HEADS, HEAD_DIM), meta_cache(HEAD_DIM, torch.bfloat16)
        batch, work = meta_batch((rows,), (context,)), meta(tiles, 2, dtype=torch.int32)
        prefill_attention(q, cache, batch, work, 0.1, None, torch.empty_like(q), architecture)


def rotate(_architecture: str) -> None:
    for rows in ROWS:
        qkv = meta(rows, (HEADS + 2 * KV_HEADS) * HEAD_DIM)
        angles, slots = meta(rows, HEAD_DIM, dtype=torch.float32), meta(rows, dtype=torch.int64)
        rotate_and_write(qkv, angles, angles, HEADS, KV_HEADS, meta_cache(HEAD_DIM, torch.bfloat16), slots)


def rows_alone(_architecture: str) -> None:
    for rows in ROWS:
        x = meta(rows, 4096)
        rms_norm(x, meta(4096), 1e-5)
        rms_norm(x, meta(4096), 1e-5, x)
        silu_and_mul(meta(rows, 2 * 14336))


def copy(_architecture: str) -> None:
    for blocks, staged in ((1, 1), (16, 2), (4097, 17)):
        pool = meta(64, blocks, 16, KV_HEADS, HEAD_DIM)
        by_block = meta(staged, 64, 16, KV_HEADS, HEAD_DIM).transpose(0, 1)
        pairs = meta(staged, 2, dtype=torch.int32)
        copy_blocks(pool, pool, pairs)
        copy_blocks(pool, by_block, pairs)
        copy_blocks(by_block, pool, pairs)


def linear(architecture: str) -> None:
    words = [meta_words(*WEIGHT, WordForm(4, 128, zeros), torch.float16) for zeros in (False, True)]
    for rows in ROWS:
        x = meta(rows, WEIGHT[1], dtype=torch.float16)
        for weight, deterministic in itertools.product(words, (False, True)):
            linear_words(x, weight, architecture, processors=132, deterministic=deterministic)
        linear_int8(x, meta_int8(*WEIGHT), architecture, processors=132)
    for weight in words:
        dequantize(weight, torch.float16)


def draw(_architecture: str) -> None:
    for rows in ROWS[:4]:
        of_rows = [meta(rows, dtype=dtype) for dtype in (torch.float32, torch.float32, torch.int64, torch.int64)]
        draw_tokens(meta(rows, VOCABULARY, dtype=torch.float32), *of_rows)


def main(architecture: str) -> None:
    variants: defaultdict[str, set[str]] = defaultdict(set)
    with compile_only(architecture) as launched:
        for step in (decode, prefill, rotate, rows_alone, copy, linear, draw):
            step(architecture)
    for launch in launched:
        variants[launch.kernel].add(launch.compiled.hash)
    print(json.dumps({name: len(hashes) for name, hashes in variants.items()}))


main(sys.argv[1])
