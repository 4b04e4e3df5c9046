"""What the loader accepts, and the sentence with which it refuses the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ConfigurationError, ModelError
from quantgate_engine.executor import machine_limits
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings

TOKENS = list(range(3, 30))


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    return save_tiny_model(tmp_path)[0]


def change_config(folder: ModelFolder, **changes: Any) -> None:
    path = folder.path / "config.json"
    values = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in values.items() if value is not ...}))


def change_weights(folder: ModelFolder, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    path = folder.path / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


def split_into_shards(folder: ModelFolder) -> None:
    path = folder.path / "model.safetensors"
    tensors = load_file(path)
    path.unlink()
    names = sorted(tensors)
    shards = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for shard, members in shards.items():
        save_file({name: tensors[name].contiguous() for name in members}, folder.path / shard)
    weight_map = {name: shard for shard, members in shards.items() for name in members}
    (folder.path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def load(folder: ModelFolder, **config: Any) -> TorchExecutor:
    return TorchExecutor.load(folder, "fp32", EngineConfig(**config))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, "field model_type: expected one of llama, mistral, qwen2, qwen3, found 'gpt2'"),
        ({"hidden_act": "gelu"}, "field hidden_act: expected silu.*found 'gelu'"),
        ({"hidden_size": "128"}, "field hidden_size: expected a positive integer, found '128'"),
        ({"vocab_size": ...}, "field vocab_size: expected a positive integer, found None"),
        ({"num_key_value_heads": 3}, r"field num_key_value_heads: expected a divisor of num_attention_heads \(4\)"),
        ({"rms_norm_eps": -1}, "field rms_norm_eps: expected a positive number, found -1"),
        ({"quantization_config": {"bits": 4}}, "field quantization_config, field quant_method: expected gptq, awq, "),
        ({"rope_parameters": 7}, "field rope_parameters: expected an object, found 7"),
        ({"eos_token_id": "x"}, "field eos_token_id: expected a token id or a list of them, found 'x'"),
    ],
)
def test_a_config_that_cannot_be_served_is_refused(changes: dict[str, Any], message: str, folder: ModelFolder) -> None:
    (folder.path / "generation_config.json").unlink()
    change_config(folder, **changes)
    with pytest.raises(ModelError, match=rf"config\.json, {message}"):
        load(folder)


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}, "rope_theta": ...},
        {"rope_parameters": ..., "rope_theta": 5000.0},
        {"rope_parameters": {"rope_type": "default"}, "rope_theta": 5000.0},
    ],
    ids=["new key", "old key", "both, split"],
)
def test_rope_theta_is_found_under_either_key(rope: dict[str, Any], folder: ModelFolder) -> None:
    change_config(folder, **rope)
    assert read_decoder_config(folder.path).rope.theta == 5000.0


def test_generation_config_has_the_last_word_on_the_end_of_a_turn(folder: ModelFolder) -> None:
    path = folder.path / "generation_config.json"
    assert read_decoder_config(folder.path).eos_token_ids == (2,)
    path.write_text(json.dumps({"eos_token_id": [2, 77]}))
    assert read_decoder_config(folder.path).eos_token_ids == (2, 77)
    path.write_text("{}")
    assert read_decoder_config(folder.path).eos_token_ids == (2,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("model.norm.weight"), r"lack the tensor model\.norm\.weight of shape \[128\]"),
        (
            lambda tensors: tensors.update({"model.norm.weight": torch.ones(64)}),
            r"model\.norm\.weight has the shape \[64\]; config\.json calls for \[128\]",
        ),
        (
            lambda tensors: tensors.update({"model.norm.weight": torch.ones(128, dtype=torch.int64)}),
            r"model\.norm\.weight is stored as torch\.int64; a floating dtype was expected",
        ),
        (
            lambda tensors: tensors.update({"model.layers.0.mlp.router.weight": torch.ones(2)}),
            r"hold 1 tensors that this decoder has no place for \(first: model\.layers\.0\.mlp\.router\.weight\)",
        ),
    ],
    ids=["missing", "misshapen", "integer", "superfluous"],
)
def test_weights_that_do_not_fit_the_config_are_refused(
    change: Callable[[dict[str, torch.Tensor]], object], message: str, folder: ModelFolder
) -> None:
    change_weights(folder, change)
    with pytest.raises(ModelError, match=message):
        load(folder)


def test_a_damaged_file_is_refused(folder: ModelFolder) -> None:
    path = folder.path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ModelError, match=r"model\.safetensors: this is not a readable safetensors file"):
        load(folder)


@pytest.mark.parametrize("scheme", ["fp32", "fp16", "int8-w8a16", "int8-w8a8", "int4-g64"])
@pytest.mark.parametrize(
    ("name", "value", "count"),
    [
        ("model.layers.1.mlp.up_proj.weight", float("nan"), 1),
        ("model.layers.0.self_attn.k_proj.weight", float("inf"), 3),
        ("model.embed_tokens.weight", float("-inf"), 2),
        ("model.norm.weight", float("nan"), 128),
    ],
)
def test_weights_that_are_not_finite_are_refused(
    name: str, value: float, count: int, scheme: str, folder: ModelFolder
) -> None:
    change_weights(folder, lambda tensors: tensors[name].view(-1)[:count].fill_(value))
    message = rf"model\.safetensors: {count} of the \d+ values of tensor {name} are NaN or infinite"
    with pytest.raises(ModelError, match=rf"{message}.*; fetch or export the model again\.$"):
        TorchExecutor.load(folder, scheme, EngineConfig())


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_weights_are_checked_in_every_dtype_and_shard(stored: torch.dtype, folder: ModelFolder) -> None:
    """The largest numbers that a dtype has are none to be refused."""

    def change(tensors: dict[str, torch.Tensor]) -> None:
        for name, tensor in tensors.items():
            tensors[name] = tensor.to(stored)
        largest = min(torch.finfo(stored).max, torch.finfo(torch.float32).max)
        tensors["model.layers.0.mlp.down_proj.weight"].fill_(largest)

    change_weights(folder, change)
    load(folder)
    split_into_shards(folder)
    path = folder.path / "model-2.safetensors"
    tensors = load_file(path)
    last = sorted(tensors)[-1]
    tensors[last].view(-1)[-1] = float("nan")
    save_file(tensors, path)
    with pytest.raises(ModelError, match=rf"model-2\.safetensors: 1 of the \d+ values of tensor {last} are NaN"):
        load(folder)


def test_a_repeated_tied_head_and_computed_rope_tables_are_ignored(folder: ModelFolder) -> None:
    expected = load(folder).logits(TOKENS)
    extras = {"lm_head.weight": torch.ones(257, 128), "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(16)}
    change_weights(folder, lambda tensors: tensors.update(extras))
    assert torch.equal(load(folder).logits(TOKENS), expected)


def test_shards_are_one_model(folder: ModelFolder) -> None:
    expected = load(folder).logits(TOKENS)
    split_into_shards(folder)
    assert torch.equal(load(folder).logits(TOKENS), expected)


def test_limits_come_from_the_settings_and_never_exceed_the_models(folder: ModelFolder) -> None:
    executor = load(folder, max_active_requests=3)
    assert (executor.max_context_tokens, executor.num_blocks) == (512, 3 * 32)
    executor = load(folder, max_active_requests=3, max_context_tokens=100, block_size=8)
    assert (executor.max_context_tokens, executor.num_blocks, executor.block_size) == (100, 3 * 13, 8)
    executor = load(folder, max_context_tokens=512, num_kv_blocks=5)
    assert (executor.max_context_tokens, executor.num_blocks) == (512, 5)
    with pytest.raises(ConfigurationError, match="max_context_tokens is 513; expected at most 512, the longest contex"):
        load(folder, max_context_tokens=513)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [([], "logits.. got 0 tokens"), ([3] * 65, "fit in 4 blocks of 16"), ([3] * 513, "expected 1 to 512 tokens")],
    ids=["none", "more than the pool", "more than the model"],
)
def test_logits_refuse_what_does_not_fit(tokens: list[int], message: str, folder: ModelFolder) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load(folder, num_kv_blocks=4).logits(tokens)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"num_kv_blocks": 10**12},
            r"^The KV cache \(1,000,000,000,000 blocks of 16 tokens\) needs [\d,]+\.\d GB, and [\d,]+\.\d GB of the",
        ),
        ({"block_size": 10**15}, r"blocks of 1,000,000,000,000,000 tokens\) needs "),
        (
            {"max_active_requests": 10**12, "max_step_tokens": 10**12},
            r"^The KV cache \([\d,]+ blocks of 16 tokens\) needs ",
        ),
        (
            {"num_kv_blocks": 4, "preemption": PreemptionSettings(mode="swap", host_blocks=10**10)},
            r"^Swapping to the host \(preemption\.host_blocks: 10,000,000,000 blocks of 16 tokens, beside the KV cache "
            r"of 4\) needs [\d,]+\.\d GB, and [\d,]+\.\d GB of the device's memory can be had; lower preemption\.host",
        ),
        (
            {"threads": 100_000},
            r"^threads is 100000, and this machine has \d+ cores; expected at most \d+\.",
        ),
    ],
)
def test_more_than_the_machine_has_is_refused_with_numbers(
    folder: ModelFolder, config: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load(folder, **config)


@pytest.mark.parametrize("blocks_left", [4, 3])
def test_another_pool_has_what_the_first_one_left(
    folder: ModelFolder, monkeypatch: pytest.MonkeyPatch, blocks_left: int
) -> None:
    first = load(folder, num_kv_blocks=4)
    left = blocks_left * 16 * first.info.kv_bytes_per_token
    monkeypatch.setattr(machine_limits, "free_bytes", lambda _device: left)
    config = EngineConfig(num_kv_blocks=4)
    if blocks_left == 4:
        assert first.beside(config).num_blocks == 4
    else:
        with pytest.raises(ConfigurationError, match=r"^The KV cache \(4 blocks of 16 tokens\) needs "):
            first.beside(config)


def test_the_cache_has_what_the_weights_left(folder: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([10**12, 0])
    monkeypatch.setattr(machine_limits, "free_bytes", lambda _device: next(answers))
    with pytest.raises(
        ConfigurationError, match=r", and 0\.0 MB of the device's memory can be had; lower num_kv_blocks"
    ):
        load(folder, num_kv_blocks=4)
