"""What config.json says of positions and windows: read in every spelling, refused with file and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quantgate_engine.errors import ModelError
from quantgate_engine.model.config import DecoderConfig, read_decoder_config

FULL, SLIDING = "full_attention", "sliding_attention"
SHAPE: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4,
    "num_attention_heads": 4, "max_position_embeddings": 4096,
}  # fmt: skip
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 1024}
YARN = {"rope_type": "yarn", "factor": 4.0}
LONGROPE = {"rope_type": "longrope", "long_factor": [2.0] * 8, "short_factor": [1.0] * 8}


def read(folder: Path, **fields: Any) -> DecoderConfig:
    (folder / "config.json").write_text(json.dumps({**SHAPE, **fields}))
    return read_decoder_config(folder)


@pytest.mark.parametrize(
    "fields",
    [
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, **LLAMA3}},
        {"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", **LLAMA3}},
        {"rope_theta": 5e5, "rope_scaling": {"type": "llama3", **LLAMA3}},
        {"rope_theta": 5e5, "rope_scaling": {"type": "llama3", **LLAMA3}, "rope_parameters": {"rope_type": "default"}},
        {
            "rope_theta": 5e5,
            "rope_parameters": {"rope_type": "llama3", **LLAMA3, "original_max_position_embeddings": 7},
            "original_max_position_embeddings": 1024,
        },
    ],
    ids=["transformers 5", "transformers 4", "older", "both", "trained context outside"],
)
def test_every_spelling_of_a_scaling_is_the_same(fields: dict[str, Any], tmp_path: Path) -> None:
    expected = read(tmp_path, rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, **LLAMA3}).rope
    assert read(tmp_path, **fields).rope == expected
    assert read(tmp_path).rope != expected


def test_a_trained_context_that_is_not_stated_is_the_stated_one(tmp_path: Path) -> None:
    """As in transformers; a factor that is left out is then their quotient."""
    shorter = {**LONGROPE, "original_max_position_embeddings": 1024}
    stated = {**LONGROPE, "original_max_position_embeddings": 4096}
    assert read(tmp_path, rope_scaling=LONGROPE).rope == read(tmp_path, rope_scaling=stated).rope
    implied = read(tmp_path, rope_scaling=shorter).rope
    assert implied == read(tmp_path, rope_scaling={**shorter, "factor": 4.0}).rope
    assert implied != read(tmp_path, rope_scaling={**shorter, "factor": 3.0}).rope


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rope_scaling": {"type": "mrope"}}, "rope_scaling.rope_type: expected one of default, linear, .*'mrope'"),
        ({"rope_scaling": {"type": ["yarn"]}}, "rope_scaling.rope_type: expected one of default"),
        ({"rope_scaling": {"type": "linear"}}, "rope_scaling.factor: expected a positive number, found None"),
        ({"rope_scaling": {"type": "dynamic", "factor": 0}}, "rope_scaling.factor: expected a positive number"),
        ({"rope_scaling": {"type": "linear", "factor": float("nan")}}, "rope_scaling.factor: expected a positive"),
        ({"rope_scaling": {"type": "llama3", "factor": 8}}, "rope_scaling.low_freq_factor: expected a positive"),
        (
            {"rope_scaling": {"type": "llama3", **LLAMA3, "high_freq_factor": 1.0}},
            r"rope_scaling.high_freq_factor: expected a number above low_freq_factor \(1\), found 1.0",
        ),
        ({"rope_scaling": {**YARN, "truncate": 1}}, "rope_scaling.truncate: expected true or false, found 1"),
        ({"rope_scaling": {**YARN, "beta_fast": "x"}}, "rope_scaling.beta_fast: expected a positive number"),
        (
            {"rope_scaling": {**LONGROPE, "long_factor": [1.0] * 7}},
            "rope_scaling.long_factor: expected a list of 8 positive numbers",
        ),
        ({"rope_scaling": {**LONGROPE, "short_factor": [0.0] * 8}}, "short_factor: expected a list of 8 positive"),
        ({"rope_parameters": {"rope_theta": 1}}, "rope_parameters.rope_theta: expected a number above 1"),
        ({"rope_theta": "10"}, "rope_theta: expected a positive number, found '10'"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor: expected 1, as heads are rotated whole"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, r"rope_parameters.partial_rotary_factor: expected 1"),
        (
            {"rope_parameters": {"rope_type": "proportional", "partial_rotary_factor": 1.5}},
            "partial_rotary_factor: expected a number above 0 and at most 1",
        ),
        (
            {"rope_parameters": {FULL: {"rope_type": "default"}, SLIDING: {"rope_type": "yarn"}}},
            f"rope_parameters.{FULL}: expected one set of values for all layers",
        ),
        ({"head_dim": 15}, "head_dim: expected an even number"),
        ({"model_type": ["llama"]}, "model_type: expected one of llama"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings: expected true or false, found 'yes'"),
        ({"attention_bias": 1}, "attention_bias: expected true or false, found 1"),
        ({"sliding_window": 100}, "sliding_window: expected null, as this family attends over the whole context"),
        ({"model_type": "mistral", "sliding_window": 0}, "sliding_window: expected a positive integer, found 0"),
        (
            {"model_type": "mistral", "sliding_window": 8, "layer_types": [SLIDING, FULL, SLIDING, FULL]},
            "layer_types: expected none, or one that agrees with sliding_window",
        ),
        (
            {"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": -1},
            "max_window_layers: expected an integer of at least 0, found -1",
        ),
        ({"model_type": "qwen3", "layer_types": [FULL]}, "layer_types: expected a list of 4 entries"),
        ({"model_type": "qwen3", "layer_types": [FULL] * 3 + [["x"]]}, "layer_types: expected a list of 4 entries"),
        (
            {"model_type": "qwen3", "layer_types": [SLIDING] * 4},
            "sliding_window: expected a number of tokens, with use_sliding_window true",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_with_its_field(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=rf"config\.json, field .*{message}"):
        read(tmp_path, **fields)


@pytest.mark.parametrize(
    ("fields", "windows"),
    [
        ({"sliding_window": 100, "use_sliding_window": False}, (None,) * 4),
        ({"model_type": "mistral"}, (4096,) * 4),
        ({"model_type": "mistral", "sliding_window": None}, (None,) * 4),
        ({"model_type": "mistral", "sliding_window": 9, "layer_types": [SLIDING] * 4}, (9,) * 4),
        ({"model_type": "qwen2", "sliding_window": 9}, (None,) * 4),
        ({"model_type": "qwen2", "sliding_window": 9, "use_sliding_window": True}, (None,) * 4),
        ({"model_type": "qwen3", "use_sliding_window": True, "max_window_layers": 3}, (None, None, None, 4096)),
    ],
    ids=["switched off", "mistral's own", "none", "named too", "qwen's switch", "qwen's 28 layers", "qwen's window"],
)
def test_windows_are_those_of_transformers_where_keys_are_left_out(
    fields: dict[str, Any], windows: tuple[int | None, ...], tmp_path: Path
) -> None:
    assert read(tmp_path, **fields).windows == windows
