"""What a checkpoint's config says of its layers, read or refused."""

from __future__ import annotations

from typing import Any

import pytest

from quantgate_engine.errors import ModelError
from quantgate_engine.quant.formats.storage import Storage
from quantgate_engine.quant.formats.stored_format import stored_format

DOWN = "model.layers.3.mlp.down_proj"
GATE = "model.layers.3.mlp.gate_proj"
QUERY = "model.layers.13.self_attn.q_proj"
HEAD = "lm_head"
INT4 = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 64, "dynamic": False}
INT8 = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel", "group_size": None, "dynamic": False}
TOKEN = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True, "observer": None}


def compressed(weights: dict[str, Any], layout: str = "pack-quantized", **fields: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": None, "output_activations": None}
    return {
        "quant_method": "compressed-tensors",
        "format": layout,
        "quantization_status": "compressed",
        "kv_cache_scheme": None,
        "ignore": ["lm_head"],
        "config_groups": {"group_0": group},
        "version": "0.12.0",
        **fields,
    }


def storage(stated: dict[str, Any], layer: str = DOWN) -> Storage | None:
    return stored_format(stated, "place").storage(layer)


def refusal(stated: object) -> str:
    with pytest.raises(ModelError) as error:
        stored_format(stated, "some/config.json, field quantization_config")
    text = str(error.value)
    assert text.startswith("some/config.json, field quantization_config")
    assert text.endswith(".")
    assert "\n" not in text
    return text
