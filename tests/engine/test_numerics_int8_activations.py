"""The scheme int8-w8a8 in a model: against transformers whose linear layers round alike, and on real text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.against_transformers import expected_logits, random_tokens
from tests.engine.kernel_sets import NAMED_SETS, runnable
from tests.engine.test_numerics_bundled_model import TEXTS
from tests.engine.tiny_model import save_tiny_model
from torch import Tensor

from quantgate_engine import LLM
from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_kernels.kernel_set_names import KernelSetName

SCHEME = "int8-w8a8"
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "untied with biases": {"tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True},
    "qwen3": {"model_type": "qwen3", "head_dim": 16},
}


class RoundedLinear(torch.nn.Module):
    """y = s_x s_w (codes of x . codes of W) + b in float64, codes by one scale for each token and for each output."""

    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        self.codes, self.scales = _rounded(linear.weight.detach())
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        codes, scales = _rounded(x)
        product = (codes @ self.codes.t() * scales * self.scales.t()).to(x.dtype)
        return product if self.bias is None else product + self.bias


def _rounded(rows: Tensor) -> tuple[Tensor, Tensor]:
    scales = rows.double().abs().amax(-1, keepdim=True) / 127
    return (rows.double() / scales).round(), scales


def divergences(expected: Tensor, found: Tensor) -> Tensor:
    """KL in nats at each position."""
    p, q = (logits.double().log_softmax(-1) for logits in (expected, found))
    return (p.exp() * (p - q)).sum(-1)


@pytest.mark.parametrize("chunk_tokens", [None, 7, 1], ids=["whole", "chunks of 7", "token by token"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kernel_set", NAMED_SETS)
def test_logits_equal_transformers_with_rounded_linear_layers(
    kernel_set: KernelSetName,
    family: str,
    chunk_tokens: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One layer in float32, where nothing but the INT8 products rounds visibly.

    Here and there the last digit of a float32 decides between two codes, and that position differs by a step. At the
    others nothing does, though the scheme moves all of them.
    """
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    folder, model = save_tiny_model(tmp_path, num_hidden_layers=1, **FAMILIES[family])
    config = EngineConfig(kernel_set=runnable(kernel_set))
    found = TorchExecutor.load(folder, SCHEME, config).logits(tokens := random_tokens(70), chunk_tokens)
    cost = divergences(expected_logits(model, tokens), found).mean()
    for embedding in (model.get_input_embeddings(), model.get_output_embeddings()):
        embedding.weight.data = embedding.weight.data.half().float()  # as the scheme stores them
    for name, module in list(model.named_modules()):
        if isinstance(module, torch.nn.Linear) and name != "lm_head":
            model.set_submodule(name, RoundedLinear(module))
    left = divergences(expected_logits(model, tokens), found)
    assert cost > 1e-4
    assert left.median() < 1e-5 * cost
    assert left.mean() < 0.1 * cost


def test_the_manifest_tells_that_linear_layers_round_their_activations(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    executor = TorchExecutor.load(folder, SCHEME, EngineConfig(num_kv_blocks=16))
    executor.logits(random_tokens(20))
    info = executor.info
    assert info.compute_dtype.endswith(", linear layers int8")
    assert info.kv_dtype in ("bfloat16", "float32")
    assert any(path.startswith("linear.int8-w8a8") for path in info.kernel_paths)


@pytest.mark.model
def test_distributions_of_the_bundled_model_stay_close_to_float32() -> None:
    """benchmarks/agreement.py measures the same on thousands of positions: see docs/schemes.md."""
    exact, rounded = (LLM("smollm2-135m-instruct", scheme=scheme, num_kv_blocks=64) for scheme in ("fp32", SCHEME))
    tokenized = [exact.tokenizer.encode(text) for text in TEXTS]
    moved = torch.cat([divergences(exact.logits(tokens), rounded.logits(tokens)) for tokens in tokenized])
    assert 0.005 < moved.mean() < 0.05
    assert rounded.info.linear_weight_bytes < 0.26 * exact.info.linear_weight_bytes
