"""One machine code for each thing that a kernel is compiled for: no batch size or length makes another."""

from __future__ import annotations

import json

import pytest
from tests.gpu.triton_processes import TRITONS, run_python

EXPECTED = {
    "rms_norm_kernel": 2,  # with a residual and without one
    "silu_and_mul_kernel": 1,
    "copy_blocks_kernel": 1,
    "decode_attention_kernel": 2,  # contexts in one split, and in several
    "merge_splits_kernel": 1,
    "prefill_attention_kernel": 1,
    "rotate_and_write_kernel": 2,  # few rows and many
    "linear_words_kernel": 6,  # few rows in splits, more in splits, many in one; each with zeros and without
    "linear_int8_kernel": 3,  # as before, and there are no zeros
    "sum_splits_kernel": 2,  # of numbers, and of products of codes
    "quantize_tokens_kernel": 1,
    "dequantize_kernel": 2,  # with zeros and without
    "draw_tokens_kernel": 1,
    "best_token_kernel": 1,
}


@pytest.mark.parametrize("triton", TRITONS)
def test_shapes_of_steps_make_no_other_variants(triton: str) -> None:
    finished = run_python(["tests/gpu/count_variants.py", "sm90"], triton)
    assert finished.returncode == 0, finished.stderr[-4000:]
    assert json.loads(finished.stdout) == EXPECTED
