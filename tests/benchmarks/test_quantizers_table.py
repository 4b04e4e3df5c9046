"""The table of schemes, on a tiny model: who is beside whom, and what follows from what was measured."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.quantizers import described, measure, read_arguments
from tests.engine.tiny_model import save_tiny_model
from tests.engine.tiny_tokenizer import save_tiny_tokenizer


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("quantizers")
    save_tiny_model(root / "model", seed=3)
    save_tiny_tokenizer(root / "model", vocab_size=256)
    schemes = ("int8-w8a16", "int4-g32", "int4-g32-clip", "int4-g32-asym")
    arguments = ["--model", str(root / "model"), "--checkpoints", str(root / "built"), "--rounds", "1"]
    arguments += ["--tokens", "16", "--positions", "100", "--answer-tokens", "3"]
    return measure(read_arguments([*arguments, *(part for name in schemes for part in ("--scheme", name))]))


def test_each_scheme_is_measured_against_the_baseline(document: dict[str, Any]) -> None:
    arms = document["arms"]
    assert list(arms) == ["fp16", "int8-w8a16", "int4-g32", "int4-g32-clip", "int4-g32-asym"]
    assert document["positions"] >= 100
    for name, found in arms.items():
        assert found["decode_tokens_per_second"] > 0
        if name != "fp16":
            low, high = found["mean_kl_95_nats"]
            # The tiny tokenizer reads all texts alike, so that sequences hardly differ.
            assert low > 0
            assert low <= found["mean_kl_nats"] * (1 + 1e-9)
            assert found["mean_kl_nats"] <= high * (1 + 1e-9)
    assert arms["int8-w8a16"]["mean_kl_nats"] < arms["int4-g32"]["mean_kl_nats"]


def test_bits_count_scales_and_zeros(document: dict[str, Any]) -> None:
    bits = {name: found["bits_per_weight"] for name, found in document["arms"].items()}
    assert bits["fp16"] == 16
    assert 8 < bits["int8-w8a16"] < 9
    assert bits["int4-g32"] == bits["int4-g32-clip"] == pytest.approx(4.5)
    assert bits["int4-g32-asym"] > 4.5


def test_the_table_has_a_row_for_each(document: dict[str, Any]) -> None:
    rows = described(document).splitlines()
    assert [row.split("`")[1] for row in rows[2:]] == list(document["arms"])
