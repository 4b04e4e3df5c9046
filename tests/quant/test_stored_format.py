"""What checkpoints say of themselves: which layers are stored how, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.quant.stated_formats import DOWN, GATE, HEAD, INT4, QUERY, compressed, refusal, storage

from quantgate_engine.errors import ModelError
from quantgate_engine.quant.formats.awq import AwqStorage
from quantgate_engine.quant.formats.bnb4 import Bnb4Storage
from quantgate_engine.quant.formats.gptq import GptqStorage
from quantgate_engine.quant.formats.gptq_zeros import ZeroConvention
from quantgate_engine.quant.formats.stored_format import read_stored_format

V1, V2 = ZeroConvention.MINUS_ONE, ZeroConvention.AS_IS

GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 64, "sym": True, "desc_act": False}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False, "bnb_4bit_quant_type": "nf4"}


class TestGptq:
    def test_settings(self) -> None:
        assert storage(GPTQ) == GptqStorage(4, 64, V1, symmetric=True)
        assert storage(GPTQ | {"desc_act": True}) == GptqStorage(4, 64, V1, symmetric=True, lists_groups=True)
        assert storage(GPTQ | {"desc_act": True, "static_groups": True}) == GptqStorage(4, 64, V1, symmetric=True)
        assert storage({"quant_method": "gptq", "bits": 8}) == GptqStorage(8, 128, V1, symmetric=None)
        assert storage(GPTQ | {"group_size": -1, "sym": False}) == GptqStorage(4, -1, V1, symmetric=False)

    @pytest.mark.parametrize(
        ("fields", "convention"),
        [
            ({"checkpoint_format": "gptq_v2"}, V2),
            ({"format": "gptq_v2"}, V2),
            ({"checkpoint_format": "gptq", "format": None}, V1),
            ({"checkpoint_format": "gptq_v2", "format": "gptq"}, V2),
        ],
    )
    def test_the_stated_convention_of_zeros(self, fields: dict[str, Any], convention: ZeroConvention) -> None:
        assert storage(GPTQ | fields) == GptqStorage(4, 64, convention, symmetric=True)

    def test_the_head_is_quantized_where_it_says_so(self) -> None:
        assert storage(GPTQ, HEAD) is None
        assert storage(GPTQ | {"lm_head": True}, HEAD) == storage(GPTQ)

    def test_settings_by_pattern(self) -> None:
        stated = GPTQ | {
            "dynamic": {
                r"-:.*\.gate_proj": {},
                r"+:.*\.13\..*q_proj": {"bits": 8, "group_size": 32, "sym": False, "desc_act": False},
                r".*\.down_proj": {"bits": 3, "desc_act": True},
                r".*\.3\..*": {"bits": 2},
            }
        }
        assert storage(stated, GATE) is None
        assert storage(stated, QUERY) == GptqStorage(8, 32, V1, symmetric=False)
        assert storage(stated, DOWN) == GptqStorage(3, 64, V1, symmetric=True, lists_groups=True)
        assert storage(stated, "model.layers.3.mlp.up_proj") == GptqStorage(2, 64, V1, symmetric=True)
        assert storage(stated, "model.layers.4.mlp.up_proj") == GptqStorage(4, 64, V1, symmetric=True)

    @pytest.mark.parametrize("grouped", [True, False])
    def test_only_the_named_modules_of_a_block(self, grouped: bool) -> None:
        names: list[Any] = ["self_attn.q_proj", "mlp.down_proj"]
        stated = GPTQ | {"modules_in_block_to_quantize": [[name] for name in names] if grouped else names}
        assert storage(stated, DOWN) is not None
        assert storage(stated, QUERY) is not None
        assert storage(stated, GATE) is None
        assert storage(stated | {"lm_head": True}, HEAD) is not None

    def test_modules_to_leave(self) -> None:
        stated = GPTQ | {"modules_to_not_convert": ["mlp.gate", "layers.1", "model.layers.13"]}
        assert storage(stated, GATE) is not None, "mlp.gate is another module"
        assert storage(stated, DOWN) is not None
        assert storage(stated, QUERY) is None

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"bits": 5}, "field bits: expected 2, 3, 4 or 8, found 5"),
            ({"bits": None}, "field bits: expected 2, 3, 4 or 8, found None"),
            ({"group_size": 0}, "field group_size: expected a positive integer, or -1 for one group"),
            ({"group_size": "x"}, "field group_size: expected a valid integer"),
            ({"checkpoint_format": "marlin"}, "field checkpoint_format: expected 'gptq' or 'gptq_v2', found 'marlin'"),
            ({"format": "bitblas"}, "field format: expected 'gptq' or 'gptq_v2', found 'bitblas'"),
            ({"is_marlin_format": True}, "field is_marlin_format: expected False, found True"),
            ({"pack_dtype": "int16"}, "field pack_dtype: expected 'int32', found 'int16'"),
            ({"dynamic": {".*": {"bits": 6}}}, "field dynamic..*.bits: expected 2, 3, 4 or 8, found 6"),
            ({"dynamic": {"-:(": {}}}, "field dynamic.-:(: '(' is not a regular expression"),
            ({"modules_to_not_convert": ["("]}, "is not a regular expression"),
        ],
    )
    def test_what_is_not_read(self, fields: dict[str, Any], said: str) -> None:
        text = refusal(GPTQ | fields)
        assert said in text
        assert text.endswith(
            "this form of gptq is not read: use a 16-bit model, or one that is quantized in another form."
        )


class TestAwq:
    def test_settings(self) -> None:
        assert storage(AWQ) == AwqStorage(128)
        assert storage(AWQ, HEAD) is None
        older = {"quant_method": "awq", "w_bit": 4, "q_group_size": 64, "zero_point": True, "version": "GEMM"}
        assert storage(older) == AwqStorage(64)
        newer = {"quant_method": "awq", "bits": 4, "group_size": -1, "checkpoint_format": "gemm", "backend": "auto"}
        assert storage(newer) == AwqStorage(-1)

    def test_modules_to_leave_and_settings_by_pattern(self) -> None:
        assert storage(AWQ | {"modules_to_not_convert": ["self_attn"]}, QUERY) is None
        assert storage(AWQ | {"modules_to_not_convert": ["self_attn"]}, DOWN) == AwqStorage(128)
        assert storage(AWQ | {"dynamic": {r".*down_proj": {"group_size": 32}}}) == AwqStorage(32)

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"version": "gemv"}, "field version: expected gemm, found 'gemv', whose order of outputs is another one"),
            ({"version": "GEMV_FAST"}, "expected gemm, found 'GEMV_FAST'"),
            ({"bits": 8}, "field bits: expected 4, found 8"),
            ({"backend": "llm-awq"}, "field backend: expected autoawq, found 'llm-awq'"),
            ({"dynamic": {".*": {"bits": 8}}}, "field dynamic: expected 4 bits for .*, found 8"),
        ],
    )
    def test_what_is_not_read(self, fields: dict[str, Any], said: str) -> None:
        assert said in refusal(AWQ | fields)


class TestBitsandbytes:
    def test_settings(self) -> None:
        assert storage(BNB) == Bnb4Storage()
        assert storage(BNB, HEAD) is None
        assert storage(BNB | {"llm_int8_skip_modules": None}, HEAD) is None

    def test_modules_to_leave_replace_the_head(self) -> None:
        stated = BNB | {"llm_int8_skip_modules": ["down_proj", r"model\.layers\.1.*"]}
        assert storage(stated) is None
        assert storage(stated, QUERY) is None
        assert storage(stated, GATE) == Bnb4Storage()
        assert storage(stated, HEAD) == Bnb4Storage()

    def test_8_bits_are_not_read(self) -> None:
        assert "field load_in_4bit: expected True, found False" in refusal(
            BNB | {"load_in_4bit": False, "load_in_8bit": True}
        )
        assert "field load_in_4bit: it is missing" in refusal({"quant_method": "bitsandbytes", "load_in_8bit": True})


@pytest.mark.parametrize("method", ["fp8", "mxfp4", "hqq", None, 4])
def test_a_method_that_is_not_read(method: object) -> None:
    text = refusal({"quant_method": method})
    assert f"field quant_method: expected gptq, awq, compressed-tensors, bitsandbytes, found {method!r}; " in text


def test_a_section_that_is_no_object() -> None:
    assert refusal("gptq").endswith("expected an object, found 'gptq'.")


def write(folder: Path, **files: object) -> Path:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


class TestFolders:
    def test_nothing_is_said(self, tmp_path: Path) -> None:
        assert read_stored_format(write(tmp_path, config={"model_type": "llama"})) is None
        assert read_stored_format(write(tmp_path, config={"quantization_config": None})) is None

    def test_in_config(self, tmp_path: Path) -> None:
        found = read_stored_format(write(tmp_path, config={"quantization_config": GPTQ}))
        assert found is not None
        assert found.format_name == "gptq"
        assert found.storage(DOWN) == storage(GPTQ)
        found = read_stored_format(write(tmp_path, config={"compression_config": compressed(INT4)}))
        assert found is not None
        assert found.format_name == "compressed-tensors"

    def test_in_files_of_their_own(self, tmp_path: Path) -> None:
        """auto-gptq's names no method, nor does AutoAWQ's."""
        stated = {"bits": 3, "group_size": 32, "damp_percent": 0.01, "desc_act": False, "sym": True}
        found = read_stored_format(write(tmp_path, config={}, quantize_config=stated))
        assert found is not None
        assert found.storage(DOWN) == GptqStorage(3, 32, V1, symmetric=True)

    def test_in_autoawqs_own_file(self, tmp_path: Path) -> None:
        stated = {"zero_point": True, "q_group_size": 64, "w_bit": 4, "version": "GEMM"}
        found = read_stored_format(write(tmp_path, config={}, quant_config=stated))
        assert found is not None
        assert found.storage(DOWN) == AwqStorage(64)

    def test_config_has_the_word_before_a_file_of_its_own(self, tmp_path: Path) -> None:
        found = read_stored_format(write(tmp_path, config={"quantization_config": GPTQ}, quantize_config={"bits": 8}))
        assert found is not None
        assert found.storage(DOWN) == storage(GPTQ)

    def test_an_error_names_file_and_field(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match=r"config\.json, field quantization_config, field bits: expected"):
            read_stored_format(write(tmp_path, config={"quantization_config": GPTQ | {"bits": 7}}))
        with pytest.raises(ModelError, match=r"quantize_config\.json, field bits: expected"):
            read_stored_format(write(tmp_path, config={}, quantize_config={"bits": 7}))
