"""Conversion of GGUF files, against transformers' own reader of the same file."""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path
from types import SimpleNamespace

import gguf
import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.convert_slow_tokenizer import Qwen2Converter
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from quantgate_engine.errors import ModelError
from quantgate_engine.model.checkpoint_check import weight_files
from quantgate_engine.model.gguf_file import GgufFile
from quantgate_engine.model.gguf_import import import_gguf
from quantgate_engine.model.gguf_pretokenizers import PRETOKENIZERS
from quantgate_engine.model.gguf_weights import halves_from_pairs, write_weights


@pytest.fixture
def source(make_gguf):
    return make_gguf()


@pytest.fixture
def folder(source, tmp_path):
    target = tmp_path / "converted"
    target.mkdir()
    import_gguf(source, target)
    return target


def test_every_tensor_equals_transformers_own_dequantization(source, folder):
    with torch.device("meta"):
        skeleton = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    theirs = load_gguf_checkpoint(str(source), return_tensors=True, model_to_load=skeleton)["tensors"]
    ours = load_file(folder / "model.safetensors")
    assert set(ours) == set(theirs)
    for name, tensor in ours.items():
        assert tensor.dtype == torch.float16
        assert torch.equal(tensor, theirs[name].to(torch.float16)), name


def test_transformers_loads_the_folder_without_missing_or_unused_tensors(folder):
    _, loading = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(loading[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))


def test_config_has_both_rope_keys_and_a_clean_epsilon(folder):
    config = json.loads((folder / "config.json").read_text())
    assert config["rope_theta"] == 50000.0
    assert config["rope_parameters"] == {"rope_type": "default", "rope_theta": 50000.0}
    assert config["rms_norm_eps"] == 1e-5
    assert config["tie_word_embeddings"] is True
    assert (config["bos_token_id"], config["eos_token_id"], config["pad_token_id"]) == (1, 2, 2)


def test_provenance_tells_the_previous_quantization(source, tmp_path):
    before = import_gguf(source, tmp_path)["previous_quantization"]
    assert (before["type"], before["group_size"], before["bits_per_weight"]) == ("Q4_1", 32, 5.0)
    assert before["tensors"] == {"Q4_1": 14, "Q8_0": 1}


def test_digits_are_split_before_bytes(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    pieces = tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str("v 12")
    assert [piece for piece, _ in pieces] == ["v", "Ġ", "1", "2"]
    # The merge "Ġ 1" exists, and only a tokenizer that lost the digit split would use it.
    assert tokenizer.tokenize(" 1") == ["Ġ", "1"]


def test_tokenizer_files_suit_other_readers(folder):
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert config["model_max_length"] == 128
    assert config["chat_template"] == (folder / "chat_template.jinja").read_text()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.apply_chat_template([{"role": "user", "content": "ab"}], tokenize=False) == "user: ab"
    assert tokenizer.encode("<|im_start|>ab<|im_end|>") == [1, tokenizer.convert_tokens_to_ids("ab"), 2]


def test_qwen2_split_equals_that_of_transformers_own_converter():
    slow = SimpleNamespace(bpe_ranks={})
    alphabet = {character: index for index, character in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    theirs = Qwen2Converter(slow).converted(alphabet, []).pre_tokenizer
    for text in ("It's 2024, isn't it?", "a  b\n\n c\t1234", "naïve 日本語 ١٢ <x>", "   "):
        assert PRETOKENIZERS["qwen2"]().pre_tokenize_str(text) == theirs.pre_tokenize_str(text)


def test_row_order_of_a_head_is_restored():
    # One head of dimension 4: llama.cpp stores rows (0, 2, 1, 3) of the halves (0, 1 | 2, 3).
    stored = np.array([[0.0], [2.0], [1.0], [3.0]], dtype=np.float32)
    assert halves_from_pairs(stored, heads=1).ravel().tolist() == [0.0, 1.0, 2.0, 3.0]


def test_large_models_are_written_in_shards(source, folder, tmp_path):
    sharded = tmp_path / "sharded"
    sharded.mkdir()
    write_weights(GgufFile(source), sharded, heads=4, kv_heads=2, shard_bytes=30_000)
    files = weight_files(sharded)
    assert len(files) > 1
    whole = load_file(folder / "model.safetensors")
    parts = {name: tensor for file in files for name, tensor in load_file(file).items()}
    assert parts.keys() == whole.keys()
    assert all(torch.equal(parts[name], whole[name]) for name in whole)


def test_full_disk_under_safetensors_is_the_systems_own_error(source, tmp_path, monkeypatch):
    def fail(*arguments, **settings):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("quantgate_engine.model.shard_writer.save_file", fail)
    with pytest.raises(OSError, match="No space left on device") as raised:
        import_gguf(source, tmp_path)
    assert raised.value.errno == errno.ENOSPC


def test_unknown_pretokenizer_is_refused(make_gguf, tmp_path):
    with pytest.raises(ModelError, match="how 'other' splits text is not known"):
        import_gguf(make_gguf(pretokenizer="other"), tmp_path)


@pytest.mark.parametrize(
    ("metadata", "meaning"),
    [({"expert_count": 8}, "mixture of experts"), ({"attention__sliding_window": 64}, "sliding attention window")],
)
def test_what_the_decoder_does_not_compute_is_refused(make_gguf, tmp_path, metadata, meaning):
    with pytest.raises(ModelError, match=meaning):
        import_gguf(make_gguf(**metadata), tmp_path)


@pytest.mark.parametrize("kept", [0.0, 0.0001, 0.3, 0.9])
def test_a_file_cut_short_is_one_sentence(source, tmp_path, kept):
    content = source.read_bytes()
    source.write_bytes(content[: math.floor(len(content) * kept)])
    with pytest.raises(ModelError, match="not a whole GGUF file"):
        import_gguf(source, tmp_path)


@pytest.mark.parametrize(
    ("name", "stored", "message"),
    [
        (
            "output_norm.weight",
            np.float32("nan"),
            r"1 of the 64 values of tensor output_norm\.weight are NaN or infinite",
        ),
        ("output_norm.weight", np.float32("-inf"), r"1 of the 64 values of tensor output_norm\.weight are NaN or inf"),
        ("blk.1.ffn_up.weight", np.float16("nan"), r"32 of the 6144 values of tensor blk\.1\.ffn_up\.weight are NaN"),
        ("token_embd.weight", np.float16("inf"), r"32 of the \d+ values of tensor token_embd\.weight are NaN or inf"),
        (
            "output_norm.weight",
            np.float32(1e6),
            r"1 of the 64 values of tensor output_norm\.weight are larger than float16",
        ),
    ],
)
def test_weights_that_are_not_finite_are_refused(source, tmp_path, name, stored, message):
    """Of a quantized tensor, the scale of the first block."""
    reader = gguf.GGUFReader(source, "r+")
    [tensor] = [each for each in reader.tensors if each.name == name]
    tensor.data.view(np.uint8).reshape(-1)[: stored.nbytes] = np.frombuffer(stored.tobytes(), np.uint8)
    reader.data.flush()
    with pytest.raises(ModelError, match=rf"tiny-source\.gguf: {message}"):
        import_gguf(source, tmp_path)


def test_unknown_architecture_is_refused(tmp_path: Path):
    path = tmp_path / "other.gguf"
    writer = gguf.GGUFWriter(path, "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match="'mamba' is not a family"):
        import_gguf(path, tmp_path)
