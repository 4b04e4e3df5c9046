"""What compressed-tensors checkpoints say of themselves: which layers are stored how, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.quant.stated_formats import DOWN, GATE, HEAD, INT4, INT8, QUERY, TOKEN, compressed, refusal, storage

from quantgate_engine.quant.formats.compressed_tensors import IntStorage, PackedStorage


class TestCompressedTensors:
    def test_packed(self) -> None:
        assert storage(compressed(INT4)) == PackedStorage(4, 64)
        assert storage(compressed(INT4), HEAD) is None
        assert storage(compressed(INT8 | {"symmetric": False})) == PackedStorage(8, -1, symmetric=False)
        assert storage(compressed(INT4 | {"strategy": None, "num_bits": 5})) == PackedStorage(5, 64)

    def test_bytes(self) -> None:
        assert storage(compressed(INT8, "int-quantized")) == IntStorage(8, -1)
        assert storage(compressed(INT8, "naive-quantized")) == IntStorage(8, -1)
        assert storage(compressed(INT8 | {"strategy": "tensor"}, "int-quantized")) == IntStorage(8, -1, one_scale=True)
        no_strategy = {"num_bits": 8, "strategy": None, "group_size": None}
        assert storage(compressed(no_strategy, "int-quantized")) == IntStorage(8, -1, one_scale=True)
        assert storage(compressed(no_strategy | {"group_size": -1}, "int-quantized")) == IntStorage(8, -1)

    def test_activations_by_token(self) -> None:
        stated = compressed(INT8, "int-quantized")
        stated["config_groups"]["group_0"]["input_activations"] = TOKEN
        assert storage(stated) == IntStorage(8, -1, int8_activations=True)

    @pytest.mark.parametrize(
        ("order", "listed"),
        [
            ("weight", False),
            ("static", False),
            (None, False),
            (False, False),
            ("group", True),
            ("dynamic", True),
            (True, True),
        ],
    )
    def test_orders_of_activation(self, order: object, listed: bool) -> None:
        assert storage(compressed(INT4 | {"actorder": order})) == PackedStorage(4, 64, lists_groups=listed)

    def test_several_groups(self) -> None:
        groups = {
            "class": {"targets": ["Linear"], "weights": INT4, "format": "pack-quantized"},
            "pattern": {"targets": [r"re:.*down_proj$"], "weights": INT8, "format": "int-quantized"},
            "later pattern": {
                "targets": [r"re:.*proj"],
                "weights": INT4 | {"group_size": 32},
                "format": "pack-quantized",
            },
            "name": {"targets": [QUERY], "weights": INT4 | {"num_bits": 3}, "format": "pack-quantized"},
        }
        stated = compressed(INT4, "mixed-precision", config_groups=groups, ignore=["re:.*k_proj", GATE])
        assert storage(stated, DOWN) == IntStorage(8, -1)
        assert storage(stated, QUERY) == PackedStorage(3, 64)
        assert storage(stated, "model.layers.0.self_attn.o_proj") == PackedStorage(4, 32)
        assert storage(stated, HEAD) == PackedStorage(4, 64)
        assert storage(stated, GATE) is None
        assert storage(stated, "model.layers.0.self_attn.k_proj") is None

    def test_layers_that_no_target_matches(self) -> None:
        stated = compressed(INT4)
        stated["config_groups"]["group_0"]["targets"] = ["re:.*mlp.*", "Embedding"]
        assert storage(stated, DOWN) is not None
        assert storage(stated, QUERY) is None

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"type": "float"}, "config_groups.group_0.weights.type: expected 'int', found 'float'"),
            ({"num_bits": 1}, "weights.num_bits: expected greater than or equal to 2, found 1"),
            ({"num_bits": 9}, "weights.num_bits: expected less than or equal to 8, found 9"),
            ({"strategy": "block"}, "weights.strategy: expected"),
            ({"strategy": "group", "group_size": None}, "expected a positive group_size beside the strategy group"),
            ({"actorder": "sideways"}, "weights.actorder: expected"),
            ({"dynamic": True}, "weights.dynamic: expected False, found True"),
        ],
    )
    def test_weights_that_are_not_read(self, fields: dict[str, Any], said: str) -> None:
        assert said in refusal(compressed(INT4 | fields))

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"dynamic": False}, "input_activations.dynamic: expected True, found False"),
            ({"strategy": "tensor"}, "input_activations.strategy: expected 'token', found 'tensor'"),
            ({"type": "float"}, "input_activations.type: expected 'int', found 'float'"),
            ({"num_bits": 4}, "input_activations.num_bits: expected 8, found 4"),
            ({"symmetric": False}, "input_activations.symmetric: expected True, found False"),
        ],
    )
    def test_activations_that_are_not_rounded_so_here(self, fields: dict[str, Any], said: str) -> None:
        stated = compressed(INT8, "int-quantized")
        stated["config_groups"]["group_0"]["input_activations"] = TOKEN | fields
        assert said in refusal(stated)

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"format": "float-quantized"}, "field format: expected 'pack-quantized', 'int-quantized'"),
            ({"format": "marlin-24"}, "found 'marlin-24'"),
            ({"format": "nvfp4-pack-quantized"}, "found 'nvfp4-pack-quantized'"),
            ({"format": "mixed-precision"}, "expected a format in config_groups.group_0"),
            ({"config_groups": {}}, "field config_groups: "),
            ({"kv_cache_scheme": {"num_bits": 8}}, "field kv_cache_scheme: expected None"),
            ({"transform_config": {"config_groups": {"R1": {}}}}, "field transform_config: expected nothing, found"),
            ({"quantization_status": "frozen"}, "field quantization_status: expected 'compressed', found 'frozen'"),
            ({"ignore": ["re:("]}, "is not a regular expression"),
            ({"sparsity_config": {"format": "sparse-24-bitmask"}}, "sparsity_config.format: expected dense, found"),
        ],
    )
    def test_forms_that_are_not_read(self, fields: dict[str, Any], said: str) -> None:
        assert said in refusal(compressed(INT4, **fields))

    def test_an_empty_word_on_sparsity_is_none(self) -> None:
        assert storage(compressed(INT4, sparsity_config={})) is not None
        assert storage(compressed(INT4, sparsity_config={"format": "dense"})) is not None
