"""What a launch must at least do, by hand, and how long that takes at published peaks. Needs no Triton."""

from __future__ import annotations

import pytest
import torch

from quantgate_kernels.gpu.ahead.published import PUBLISHED, roofline
from quantgate_kernels.gpu.ahead.work import KernelWork, work_of
from quantgate_kernels.gpu.launch_table import ARCHITECTURES


def meta(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


HEADS, KV_HEADS, HEAD_DIM, CONTEXT = 4, 2, 64, 48


def attention(rows: int, stored: torch.dtype) -> dict[str, object]:
    scales = meta(9, 16, KV_HEADS, dtype=torch.float32) if stored == torch.int8 else None
    return {
        "q": meta(rows, HEADS, HEAD_DIM),
        "attended": meta(rows, HEADS, HEAD_DIM),
        "keys": meta(9, 16, KV_HEADS, HEAD_DIM, dtype=stored),
        "key_scales": scales,
        "tables": meta(rows, CONTEXT // 16, dtype=torch.int32),
        "HEADS": HEADS,
        "KV_HEADS": KV_HEADS,
        "HEAD_DIM": HEAD_DIM,
        "BLOCK_SIZE": 16,
    }


@pytest.mark.parametrize(("stored", "token_bytes"), [(torch.bfloat16, 2 * 2 * 128), (torch.int8, 2 * 2 * (64 + 4))])
def test_decodes_read_their_contexts_and_not_the_pool(stored: torch.dtype, token_bytes: int) -> None:
    launch = attention(3, stored) | {"sequences": meta(3, dtype=torch.int32), "WHOLE": True}
    work = work_of("decode_attention_kernel", launch)
    assert work.bytes_moved == 3 * CONTEXT * token_bytes + 2 * 3 * HEADS * HEAD_DIM * 2
    assert (work.operations, work.width) == (4 * 3 * CONTEXT * HEADS * HEAD_DIM, "16-bit")


def test_decodes_in_splits_write_sums_for_the_merge() -> None:
    partial = {"partial": meta(3, HEADS, 2, HEAD_DIM, dtype=torch.float32), "weights": meta(3, HEADS, 2)}
    launch = attention(3, torch.bfloat16) | {"sequences": meta(3, dtype=torch.int32), **partial}
    whole, split = (work_of("decode_attention_kernel", launch | {"WHOLE": whole}) for whole in (True, False))
    assert split.bytes_moved - whole.bytes_moved == 3 * HEADS * (2 * (HEAD_DIM * 4 + 2) - HEAD_DIM * 2)


def test_prefills_multiply_what_each_new_token_sees() -> None:
    work = work_of("prefill_attention_kernel", attention(5, torch.bfloat16))
    pairs = sum(range(CONTEXT - 4, CONTEXT + 1))
    assert work.operations == 4 * pairs * HEADS * HEAD_DIM


def test_a_product_reads_the_weight_once() -> None:
    launch = {
        "x": meta(16, 128, dtype=torch.float16),
        "words": meta(32, 16, dtype=torch.int32),
        "scales": meta(4, 32, dtype=torch.float16),
        "product": meta(16, 32, dtype=torch.float16),
        "INPUTS": 128,
        "OUTPUTS": 32,
    }
    symmetric = work_of("linear_words_kernel", launch | {"zeros": None})
    assert symmetric == KernelWork(
        "16 x 128 x 32", 16 * 128 * 2 + 32 * 16 * 4 + 4 * 32 * 2 + 16 * 32 * 2, 2 * 16 * 128 * 32, "16-bit"
    )
    with_zeros = work_of("linear_words_kernel", launch | {"zeros": meta(4, 32, dtype=torch.uint8)})
    assert with_zeros.bytes_moved - symmetric.bytes_moved == 4 * 32


def test_numbers_are_written_and_all_that_makes_them_is_read() -> None:
    launch = {
        "words": meta(32, 16, dtype=torch.int32),
        "scales": meta(4, 32, dtype=torch.float16),
        "zeros": meta(4, 32, dtype=torch.uint8),
        "numbers": meta(32, 128, dtype=torch.float16),
    }
    assert work_of("dequantize_kernel", launch).bytes_moved == 32 * 16 * 4 + 4 * 32 * (2 + 1) + 32 * 128 * 2


@pytest.mark.parametrize(("added", "passes"), [(False, 2), (True, 4)])
def test_a_norm_moves_its_rows_and_the_residuals(added: bool, passes: int) -> None:
    x = meta(4, 64)
    launch = {"x": x, "residual": x, "weight": meta(64), "normalised": x, "total": x, "ADDED": added}
    assert work_of("rms_norm_kernel", launch).bytes_moved == passes * 4 * 64 * 2 + 64 * 2


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_longer_of_memory_and_arithmetic_is_the_bound(architecture: str) -> None:
    peaks = PUBLISHED[architecture]
    second_of_memory = int(peaks.bytes_per_s)
    quarter_of_products = int(peaks.ops_per_s["int8"] / 4)
    bound = roofline(KernelWork("", second_of_memory, quarter_of_products, "int8"), architecture)
    assert (bound.limited_by, bound.seconds) == ("memory", pytest.approx(1))
    assert (bound.memory_share, bound.arithmetic_share) == (1, pytest.approx(0.25))
    bound = roofline(KernelWork("", second_of_memory, 4 * int(peaks.ops_per_s["16-bit"]), "16-bit"), architecture)
    assert (bound.limited_by, bound.seconds) == ("arithmetic", pytest.approx(4))
    assert (bound.memory_share, bound.arithmetic_share) == (pytest.approx(0.25), 1)
