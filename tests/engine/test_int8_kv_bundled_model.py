"""The bundled model with its keys and values in 8 bits and in 16, the same weights: half the bytes, close answers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.test_numerics_bundled_model import TEXTS

from quantgate_engine import LLM

pytestmark = pytest.mark.model

QUESTIONS = (
    "Why does the sea rise and fall twice a day?",
    "Write a Python function that merges two sorted lists.",
    "What is the capital of Norway?",
    "Translate into French: the boats settle on the mud.",
    "Name three uses of a hammer.",
    "How many days are in a leap year?",
)
LARGEST_SHARE_OF_16_BITS = 0.56
LARGEST_MEAN_KL = 0.02


@pytest.fixture(scope="module")
def sixteen_bit() -> LLM:
    return LLM("smollm2-135m-instruct", scheme="bf16", num_kv_blocks=64)


@pytest.fixture(scope="module")
def int8() -> LLM:
    return LLM("smollm2-135m-instruct", scheme="bf16", num_kv_blocks=64, kv_dtype="int8")


def test_bytes_per_token(sixteen_bit: LLM, int8: LLM) -> None:
    """30 layers of 3 key heads with 64 numbers each, and for int8 a scale of 4 bytes for each key and each value."""
    assert sixteen_bit.info.kv_bytes_per_token == 30 * 3 * 2 * 64 * 2
    assert int8.info.kv_bytes_per_token == 30 * 3 * 2 * (64 + 4)
    assert int8.info.kv_bytes_per_token / sixteen_bit.info.kv_bytes_per_token <= LARGEST_SHARE_OF_16_BITS


def test_distributions_stay_close(sixteen_bit: LLM, int8: LLM) -> None:
    """benchmarks/int8_kv.py measures the same over the quick suite's prompts."""
    divergences, firsts = [], []
    for question in QUESTIONS:
        prompt = sixteen_bit.tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], add_generation_prompt=True, return_dict=False
        )
        p, q = (llm.logits(prompt)[-1].double().log_softmax(-1) for llm in (sixteen_bit, int8))
        firsts.append(bool(p.argmax() == q.argmax()))
        divergences.append(float((p.exp() * (p - q)).sum()))
    for text in TEXTS[:2]:
        tokens = sixteen_bit.tokenizer.encode(text)
        p, q = (llm.logits(tokens).double().log_softmax(-1) for llm in (sixteen_bit, int8))
        divergences += (p.exp() * (p - q)).sum(-1).tolist()
    assert all(firsts)
    assert 0 < np.mean(divergences) <= LARGEST_MEAN_KL
