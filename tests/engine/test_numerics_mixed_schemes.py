"""Maps from layers to schemes: each layer gets its own, and the model computes what the layers together are."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.engine.against_transformers import divergence, random_tokens
from tests.engine.kernel_sets import NAMED_SETS, runnable
from tests.engine.tiny_model import save_tiny_model
from torch import Tensor

from quantgate_engine.config import EngineConfig, KernelSetName
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.quant.layer_schemes import LayerSchemes, find_schemes
from quantgate_engine.quant.scheme_text import SchemeChoice
from quantgate_engine.quant.schemes import find_scheme
from quantgate_kernels.reference.linear import dequantize
from quantgate_kernels.registry import make_kernel_set

SMALL = {"default": "int4-g32", "*.down_proj": "int8-w8a16", "model.layers.1.*": "int8-w8a8", "lm_head": "int8-w8a16"}
UNLIKE_IN_ONE_PRODUCT = {"default": "int4-g64", "*.k_proj": "int8-w8a16", "*.up_proj": "int4-g32", "*.o_proj": "fp16"}


def expected_logits(model: torch.nn.Module, schemes: LayerSchemes, tokens: list[int]) -> Tensor:
    """By transformers in float32, each weight replaced by what its scheme makes of it."""
    precision = schemes.precision(torch.device("cpu"), make_kernel_set())
    with torch.no_grad():
        for name, layer in model.named_modules():
            if isinstance(layer, torch.nn.Linear):
                scheme = schemes.of_head() if name == "lm_head" else schemes.of(name)
                if scheme is not None:
                    stored = dequantize(scheme.quantize(layer.weight.float(), precision))
                    layer.weight = torch.nn.Parameter(stored)
        logits: Tensor = model(torch.tensor([tokens])).logits[0]
    return logits


@pytest.mark.parametrize("kernel_set", NAMED_SETS)
@pytest.mark.parametrize("choice", [SMALL, UNLIKE_IN_ONE_PRODUCT], ids=["kinds", "unlike"])
def test_each_layer_is_quantized_by_its_own_scheme(
    choice: dict[str, str], kernel_set: KernelSetName, tmp_path: Path
) -> None:
    folder, model = save_tiny_model(tmp_path)
    executor = TorchExecutor.load(folder, choice, EngineConfig(kernel_set=runnable(kernel_set)))
    tokens = random_tokens(40)
    found = executor.logits(tokens)
    right = divergence(expected_logits(model, find_schemes(choice), tokens), found)
    _, untouched = save_tiny_model(tmp_path)
    plain = divergence(untouched(torch.tensor([tokens])).logits[0].detach(), found)
    assert right < 2e-3
    assert plain > 5 * right


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("kernel_set", NAMED_SETS)
def test_decodes_take_the_path_of_a_quantized_head_too(
    kernel_set: KernelSetName, deterministic: bool, tmp_path: Path
) -> None:
    folder, _ = save_tiny_model(tmp_path)
    config = EngineConfig(kernel_set=runnable(kernel_set), deterministic=deterministic)
    executor = TorchExecutor.load(folder, SMALL, config)
    tokens = random_tokens(20)
    scores = executor.token_scores(tokens, alternatives=1)
    best = executor.logits(tokens).argmax(-1).tolist()
    assert [score.top_logprobs[0][0] for score in scores] == best[:-1]


def test_the_head_is_parted_from_a_tied_embedding_only_where_a_pattern_names_it(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    config = EngineConfig(kernel_set="reference")
    for choice, parted in ((SMALL, True), ({"default": "int8-w8a16", "*": "int4-g32"}, False)):
        weights = TorchExecutor.load(folder, choice, config)._decoder.weights
        assert (weights.head is not weights.embedding) == parted
        assert weights.embedding.label == TorchExecutor.load(folder, "fp16", config)._decoder.weights.head.label


def test_an_arm_is_called_by_its_map(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    info = TorchExecutor.load(folder, SMALL, EngineConfig(kernel_set="reference")).info
    assert info.scheme == "int4-g32+*.down_proj=int8-w8a16+model.layers.1.*=int8-w8a8+lm_head=int8-w8a16"
    assert find_schemes(info.scheme) == find_schemes(SMALL)
    assert info.compute_dtype.endswith("linear layers int8")


def test_the_first_pattern_that_fits_counts() -> None:
    schemes = find_schemes({"model.layers.0.*": "fp16", "*.down_proj": "int8-w8a16", "default": "int4-g64"})
    assert schemes.of("model.layers.0.mlp.down_proj") is find_scheme("fp16")
    assert schemes.of("model.layers.10.mlp.down_proj") is find_scheme("int8-w8a16")
    assert schemes.of("model.layers.10.mlp.up_proj") is find_scheme("int4-g64")
    assert schemes.of_head() is None


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"lm_head": "int8-w8a16"}, "has no 'default'"),
        ({"default": "int4-g64", "*.down": "fp16"}, r"'\*\.down', which fits no layer of this model.*down_proj"),
        ({"default": "int4-g64", "lm_head": "int5"}, "Unknown scheme 'int5'"),
        ("int4-g64+lm_head", "'lm_head' is none of its exceptions; expected PATTERN=SCHEME"),
        ("int4-g64+lm_head=", "'lm_head=' is none of its exceptions"),
        ("+lm_head=fp16", "Unknown scheme ''"),
        ({"default": "int8-w8a16", "lm_head": "fp32"}, "do not compute in one dtype"),
        ({"default": "int8-w8a16", "*.down_proj": "int4-g128"}, r"int4-g128 does not fit down_proj \(192 inputs\)"),
    ],
)
def test_a_map_that_fits_no_model_is_told_so(choice: SchemeChoice, words: str, tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    with pytest.raises(ConfigurationError, match=words):
        TorchExecutor.load(folder, choice, EngineConfig())
