"""The parts of benchmarks/kernels that measure nothing: what a kernel must do at least, copies in no cache, ratios."""

from __future__ import annotations

import pytest
import torch
from benchmarks.kernels import shapes
from benchmarks.kernels.beside_bounds import TORCH, Row, summary
from benchmarks.kernels.shapes import BLOCK_SIZE, FORMS, HEAD_DIM, HEADS, KV_HEADS, bytes_of, kv_layer, paged_batch
from benchmarks.kernels.test_attention import attention_work
from benchmarks.kernels.test_products import product_work

from quantgate_kernels.reference.linear import multiply, stored_form

BYTES_OF_WEIGHT = {
    "bfloat16": 2 * 128 * 64,
    "int8-w8a16": 128 * 64 + 2 * 128,
    "int8-w8a8": 128 * 64 + 4 * 128,
    "int4-g64": 128 * 64 // 2 + 2 * 128,
}


@pytest.mark.parametrize("form", FORMS)
def test_products_read_the_weight_as_it_is_stored_and_multiply_in_its_width(form: str) -> None:
    work = product_work(FORMS[form](128, 64), rows=3)
    assert work.bytes_read == BYTES_OF_WEIGHT[form] + 2 * 3 * 64
    assert work.operations == {"int8" if form == "int8-w8a8" else "16-bit": 2 * 3 * 128 * 64}


@pytest.mark.parametrize(("int8", "bytes_of_token"), [(False, 2 * 3 * 64 * 2), (True, 2 * 3 * (64 + 4))])
def test_attention_reads_what_is_seen_and_pairs_each_row_with_all_before_it(int8: bool, bytes_of_token: int) -> None:
    sequences = [(0, 5), (BLOCK_SIZE * 2, 1), (BLOCK_SIZE, 3)]
    batch = paged_batch(sequences)
    work = attention_work(batch, kv_layer(batch, stored_as_int8=int8))
    pairs = sum(earlier + row + 1 for earlier, new in sequences for row in range(new))
    assert work.operations == {"16-bit": 4 * HEADS * HEAD_DIM * pairs}
    assert work.bytes_read == (5 + 33 + 19) * bytes_of_token


def test_sequences_have_slots_of_their_own() -> None:
    batch = paged_batch([(7, 20), (0, 1), (40, 2)])
    assert len(set(batch.slots.tolist())) == batch.num_rows == 23
    assert batch.positions.tolist() == [*range(7, 27), 0, 40, 41]
    layer = kv_layer(batch, stored_as_int8=False)
    assert int(batch.slots.max()) < layer.keys.shape[0] * BLOCK_SIZE
    assert bytes_of(layer) == 2 * 2 * layer.keys.shape[0] * BLOCK_SIZE * KV_HEADS * HEAD_DIM


@pytest.mark.parametrize("form", FORMS)
def test_copies_are_alike_lie_apart_and_fill_more_than_a_cache(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "READ_BYTES", 100_000)
    weight = stored_form(FORMS[form](128, 64), torch.bfloat16)
    copies = shapes.cold(weight, BYTES_OF_WEIGHT[form])
    assert len(copies) * BYTES_OF_WEIGHT[form] >= 100_000 > (len(copies) - 1) * BYTES_OF_WEIGHT[form]
    x = shapes.numbers(2, 64)
    assert all(torch.equal(multiply(x, copy, {}), multiply(x, weight, {})) for copy in copies)
    assert len({id(tensor) for copy in copies for tensor in copy.tensors()}) == len(copies) * len(weight.tensors())


def test_the_summary_has_each_kernel_beside_its_bound_and_torch() -> None:
    rows = [
        Row("product", "panels", 50e-6, 20e-6),
        Row("product", TORCH, 100e-6, 20e-6),
        Row("norm", "cpp", 1e-6, None),
    ]
    table = summary(rows)
    cells = list(zip(*(column.cells for column in table.columns), strict=True))
    assert cells == [
        ("product", "panels", "50.0", "20.0", "40%", "2.00"),
        ("product", TORCH, "100.0", "20.0", "20%", "1.00"),
        ("norm", "cpp", "1.0", "–", "–", "–"),
    ]
