"""Checkpoints that are quantized already: the engine computes what their codes stand for, on every kernel set."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engine.against_transformers import divergence, expected_logits, random_tokens
from tests.engine.kernel_sets import NAMED_SETS, runnable
from tests.engine.tiny_model import save_tiny_model
from tests.quant.stored_model import Quantize, Write, save_stored_model
from torch import Tensor

from quantgate_engine.config import EngineConfig, KernelSetName
from quantgate_engine.errors import ConfigurationError, ModelError
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.quant.formats.awq import write_awq
from quantgate_engine.quant.formats.compressed_tensors import write_int, write_packed
from quantgate_engine.quant.formats.gptq import write_gptq
from quantgate_engine.quant.formats.gptq_zeros import ZeroConvention
from quantgate_engine.quant.grouped_codes import GroupedCodes
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.rounding import round_to_nearest
from quantgate_engine.quant.perturbation import WeightPerturbation

TOKENS = random_tokens(40)


def rounded(
    bits: int, group_size: int | None, *, symmetric: bool = True, shuffled: bool = False, head: bool = False
) -> Quantize:
    """shuffled: inputs belong to groups in an order of their own, one for all layers of as many inputs."""

    def quantize(layer: str, weight: Tensor) -> GroupedCodes | None:
        if layer == "lm_head" and not head:
            return None
        grid = Grid(bits, group_size, symmetric=symmetric)
        if not shuffled:
            return round_to_nearest(weight, grid)
        order = torch.randperm(weight.shape[1], generator=torch.Generator().manual_seed(3))
        codes = round_to_nearest(weight[:, order], grid)
        back = order.argsort()
        return GroupedCodes(codes.codes[:, back], codes.scales, codes.zeros, bits, codes.groups()[back])

    return quantize


def gptq(bits: int, group_size: int, **more: Any) -> dict[str, Any]:
    return {"quant_method": "gptq", "bits": bits, "group_size": group_size, **more}


def compressed(bits: int, form: str, group_size: int | None = None, **more: Any) -> dict[str, Any]:
    grouping = {"strategy": "channel"} if group_size is None else {"strategy": "group", "group_size": group_size}
    weights = {"num_bits": bits, "type": "int", "symmetric": True, **grouping, **more.pop("weights", {})}
    group = {"targets": ["Linear"], "weights": weights, **more}
    return {
        "quant_method": "compressed-tensors",
        "format": form,
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
    }


TOKEN_WISE = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}
V2 = partial(write_gptq, convention=ZeroConvention.AS_IS)
CASES: dict[str, tuple[Quantize, Write, dict[str, Any]]] = {
    "gptq 4 bits": (rounded(4, 32), write_gptq, gptq(4, 32, sym=True)),
    "gptq 4 bits, act-order": (rounded(4, 32, shuffled=True), write_gptq, gptq(4, 32, sym=True, desc_act=True)),
    "gptq 4 bits, zeros": (rounded(4, 64, symmetric=False), write_gptq, gptq(4, 64, sym=False)),
    "gptq 4 bits, v2": (rounded(4, 32), V2, gptq(4, 32, sym=True, checkpoint_format="gptq_v2")),
    "gptq 4 bits, one group": (rounded(4, None), write_gptq, gptq(4, -1, sym=True)),
    "gptq 8 bits": (rounded(8, 32), write_gptq, gptq(8, 32, sym=True)),
    "gptq 8 bits, zeros": (rounded(8, 32, symmetric=False), write_gptq, gptq(8, 32, sym=False)),
    "gptq 3 bits": (rounded(3, 32, symmetric=False), write_gptq, gptq(3, 32, sym=False)),
    "gptq 2 bits": (rounded(2, 32), write_gptq, gptq(2, 32, sym=True)),
    "awq": (rounded(4, 32, symmetric=False), write_awq, {"quant_method": "awq", "bits": 4, "group_size": 32}),
    "packed": (rounded(4, 32), write_packed, compressed(4, "pack-quantized", 32)),
    "packed, zeros": (
        rounded(4, 32, symmetric=False), write_packed, compressed(4, "pack-quantized", 32, weights={"symmetric": False})
    ),
    "bytes": (rounded(8, None), write_int, compressed(8, "int-quantized")),
}  # fmt: skip


def load(folder: ModelFolder, kernel_set: KernelSetName = "reference", **more: Any) -> TorchExecutor:
    return TorchExecutor.load(folder, None, EngineConfig(kernel_set=kernel_set, **more))


@pytest.mark.parametrize("kernel_set", NAMED_SETS)
@pytest.mark.parametrize("case", CASES)
def test_the_model_is_the_one_that_its_codes_stand_for(case: str, kernel_set: KernelSetName, tmp_path: Path) -> None:
    quantize, write, config = CASES[case]
    folder, model = save_stored_model(tmp_path, quantize, write, config)
    executor = load(folder, runnable(kernel_set))
    assert executor.info.scheme == "stored"
    # Activations have 16 bits here and 32 there.
    assert divergence(expected_logits(model, TOKENS), executor.logits(TOKENS)) < 2e-3
    _, floats = save_tiny_model(tmp_path / "floats")
    assert divergence(expected_logits(floats, TOKENS), executor.logits(TOKENS)) > 1e-5


@pytest.mark.parametrize("case", CASES)
def test_in_float32_the_difference_is_that_of_sums_alone(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a processor without 16-bit products: the reference's own path."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    quantize, write, config = CASES[case]
    folder, model = save_stored_model(tmp_path, quantize, write, config, tie_word_embeddings=False)
    for tables in (model.get_input_embeddings(), model.get_output_embeddings()):
        tables.weight.data = tables.weight.half().float()
    found, expected = load(folder).logits(TOKENS), expected_logits(model, TOKENS)
    assert float((found - expected).abs().max() / expected.abs().max()) < 1e-3


@pytest.mark.parametrize("kernel_set", NAMED_SETS)
def test_int8_activations_are_those_of_the_scheme(kernel_set: KernelSetName, tmp_path: Path) -> None:
    config = compressed(8, "int-quantized", input_activations=TOKEN_WISE)
    folder, _ = save_stored_model(tmp_path, rounded(8, None), write_int, config)
    executor = load(folder, runnable(kernel_set))
    assert executor.info.compute_dtype.endswith("linear layers int8")
    weights = [projection.weight.label for projection in executor._decoder.weights.projections()]
    assert set(weights) == {"int8-w8a8"}


def test_a_quantized_head_is_read(tmp_path: Path) -> None:
    config = gptq(8, 32, sym=True, lm_head=True)
    folder, model = save_stored_model(
        tmp_path, rounded(8, 32, head=True), write_gptq, config, tie_word_embeddings=False
    )
    for kernel_set in NAMED_SETS:
        executor = load(folder, runnable(kernel_set))
        assert divergence(expected_logits(model, TOKENS), executor.logits(TOKENS)) < 1e-3
    assert executor.info.provenance["stored_quantization"] == {
        "format": "gptq",
        "layers": {"8-bit GPTQ, groups of 32": 22},
        "description": "8-bit GPTQ, groups of 32",
        "remarks": [],
    }


def test_layers_of_one_product_may_be_stored_unlike_each_other(tmp_path: Path) -> None:
    def quantize(layer: str, weight: Tensor) -> GroupedCodes | None:
        return None if layer.endswith("k_proj") else rounded(4, 32)(layer, weight)

    config = gptq(4, 32, sym=True, dynamic={r"-:.*k_proj": {}})
    folder, model = save_stored_model(tmp_path, quantize, write_gptq, config)
    for kernel_set in NAMED_SETS:
        found = load(folder, runnable(kernel_set)).logits(TOKENS)
        assert divergence(expected_logits(model, TOKENS), found) < 1e-3


def test_other_schemes_quantize_what_the_codes_stand_for(tmp_path: Path) -> None:
    folder, model = save_stored_model(tmp_path, rounded(4, 32), write_gptq, gptq(4, 32, sym=True))
    executor = TorchExecutor.load(folder, "fp32", EngineConfig(kernel_set="reference"))
    assert divergence(expected_logits(model, TOKENS), executor.logits(TOKENS)) < 1e-9
    assert executor.info.provenance["previous_quantization"]["description"] == "4-bit GPTQ, groups of 32"


def test_a_mislabelled_convention_of_zeros_is_seen_and_told(tmp_path: Path) -> None:
    folder, model = save_stored_model(tmp_path, rounded(4, 32), V2, gptq(4, 32, sym=True, checkpoint_format="gptq"))
    executor = load(folder)
    assert divergence(expected_logits(model, TOKENS), executor.logits(TOKENS)) < 1e-3
    [remark] = executor.info.provenance["stored_quantization"]["remarks"]
    assert "gptq_v2" in remark


@pytest.mark.parametrize(
    ("scheme", "perturbation", "words"),
    [
        ("stored+lm_head=fp16", None, "Scheme stored has no exceptions by name"),
        ("stored", WeightPerturbation(0.1, 1), "A weight perturbation changes weights before they are quantized"),
    ],
)
def test_what_cannot_be_done_to_stored_weights_is_told(
    scheme: str, perturbation: WeightPerturbation | None, words: str, tmp_path: Path
) -> None:
    folder, _ = save_stored_model(tmp_path, rounded(4, 32), write_gptq, gptq(4, 32))
    with pytest.raises(ConfigurationError, match=words):
        TorchExecutor.load(folder, scheme, EngineConfig(), perturbation=perturbation)


def test_weights_that_are_not_quantized_are_not_as_stored(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    with pytest.raises(ConfigurationError, match="this model's are not quantized; choose a scheme"):
        TorchExecutor.load(folder, "stored", EngineConfig())
    assert TorchExecutor.load(folder, None, EngineConfig()).info.scheme == "fp16"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda tensors, layer: tensors.pop(f"{layer}.scales"), "scales is missing"),
        (lambda tensors, layer: tensors.update({f"{layer}.more": torch.zeros(1)}), "1 tensors that this decoder has"),
        (lambda tensors, layer: [tensors.pop(f"{layer}.{name}") for name in ("qweight", "qzeros", "scales", "g_idx")],
         "is quantized by the word of the configuration .* but none of its tensors is there"),
    ],
    ids=["a tensor is missing", "one too many", "a layer is missing"],
)  # fmt: skip
def test_damaged_checkpoints_end_in_one_sentence(damage: Any, words: str, tmp_path: Path) -> None:
    folder, _ = save_stored_model(tmp_path, rounded(4, 32), write_gptq, gptq(4, 32, sym=True))
    weights = tmp_path / "model.safetensors"
    tensors = load_file(weights)
    damage(tensors, "model.layers.1.mlp.up_proj")
    save_file(tensors, weights)
    with pytest.raises(ModelError, match=words):
        load(folder)


def test_int8_activations_want_one_symmetric_scale_per_output(tmp_path: Path) -> None:
    config = compressed(8, "pack-quantized", 32, input_activations=TOKEN_WISE)
    folder, _ = save_stored_model(tmp_path, rounded(8, 32), write_packed, config)
    with pytest.raises(ModelError, match="is to meet INT8 activations, which is computed for symmetric weights with"):
        load(folder)
    assert json.loads((tmp_path / "config.json").read_text())["quantization_config"] == config
