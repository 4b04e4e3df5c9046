"""The real model, as converted: the weights and the token ids that were checked once against other readers."""

from __future__ import annotations

import json

import pytest
from transformers import AutoTokenizer

from quantgate_engine.model.catalog import resolve_model

pytestmark = pytest.mark.model

# Of the file whose 272 tensors were found equal, bit for bit, to transformers' dequantization rounded to float16.
WEIGHTS_SHA256 = "d8d8571b3af99053c8ad455ce009d8479eec5da515f80a417c075d0a7f317904"


@pytest.fixture(scope="module")
def model():
    return resolve_model("smollm2-135m-instruct")


@pytest.fixture(scope="module")
def tokenizer(model):
    return AutoTokenizer.from_pretrained(model.path)


def test_weights_are_those_that_were_checked(model):
    assert model.weights_sha256 == WEIGHTS_SHA256


def test_config(model):
    config = json.loads((model.path / "config.json").read_text())
    assert config["rope_theta"] == config["rope_parameters"]["rope_theta"] == 100000.0
    assert config["rms_norm_eps"] == 1e-5
    assert (config["bos_token_id"], config["eos_token_id"], config["pad_token_id"]) == (1, 2, 2)
    assert (config["vocab_size"], config["num_hidden_layers"], config["head_dim"]) == (49152, 30, 64)


def test_provenance(model):
    before = model.provenance["previous_quantization"]
    assert (before["type"], before["group_size"]) == ("Q4_1", 32)
    assert model.provenance["licence"] == "Apache-2.0"


# As llama.cpp tokenises them.
@pytest.mark.parametrize(
    ("text", "token_ids"),
    [
        ("a  1 b   22", [81, 256, 33, 278, 333, 34, 34]),
        ("\n\n 7", [8866, 39]),
        ("v1.2  3", [102, 33, 30, 34, 256, 35]),
        ("<|im_start|>user\nhi<|im_end|>", [1, 4093, 198, 6004, 2]),
    ],
)
def test_token_ids_of_tricky_text(tokenizer, text, token_ids):
    assert tokenizer.encode(text) == token_ids
    assert tokenizer.decode(token_ids) == text


def test_chat_template_adds_the_models_own_system_prompt(tokenizer):
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], tokenize=False, add_generation_prompt=True
    )
    assert text == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )
