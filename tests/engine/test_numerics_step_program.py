"""The `cpu` set through the whole engine: 16 bits by its step program, float32 and deterministic mode without it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.engine.against_transformers import expected_logits, random_tokens
from tests.engine.kernel_sets import runnable
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.clock import MonotonicClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.sampling_params import SamplingParams
from quantgate_kernels.cpu.kernels import STEP_PATH
from quantgate_kernels.kernel_set_names import KernelSetName


def load(folder: Path, kernel_set: KernelSetName, scheme: str = "bf16") -> TorchExecutor:
    model, _ = save_tiny_model(folder)
    return TorchExecutor.load(model, scheme, EngineConfig(num_kv_blocks=16, kernel_set=runnable(kernel_set)))


@pytest.mark.parametrize("chunk_tokens", [None, 9, 1])
def test_it_is_no_further_from_float32_than_the_reference(chunk_tokens: int | None, tmp_path: Path) -> None:
    """Of its own 16-bit noise the reference is one sample: as much, and a third more, is noise of its kind."""
    _, model = save_tiny_model(tmp_path)
    expected = expected_logits(model, tokens := random_tokens(70))
    errors = {
        name: (load(tmp_path, name).logits(tokens, chunk_tokens) - expected).square().mean().sqrt()
        for name in ("cpu", "reference")
    }
    assert 0 < errors["cpu"] < 1.3 * errors["reference"]


def test_tokens_are_the_likeliest_within_16_bit_noise(tmp_path: Path) -> None:
    """Two logits, each as far off as those of a prefill at most, may change places; a half more is for decoding's own.

    Requests without log-probabilities take the head that writes no logits.
    """
    _, model = save_tiny_model(tmp_path)
    executor = load(tmp_path, "cpu")
    core = EngineCore(executor, EngineConfig(num_kv_blocks=16, max_step_tokens=16), MonotonicClock())
    params = SamplingParams(max_tokens=24, ignore_eos=True)
    prompts = [random_tokens(30, seed=2), random_tokens(5, seed=3)]
    requests = [core.add_request(str(index), tuple(prompt), params) for index, prompt in enumerate(prompts)]
    while core.has_work:
        core.step()
    for request, prompt in zip(requests, prompts, strict=True):
        tokens = [*prompt, *request.output_token_ids]
        expected = expected_logits(model, tokens)
        noise = (executor.logits(tokens) - expected).abs().max()
        rows = expected[len(prompt) - 1 : -1]
        drawn = torch.tensor(request.output_token_ids).unsqueeze(-1)
        behind = rows.amax(-1) - rows.gather(-1, drawn).squeeze(-1)
        assert len(drawn) == 24
        assert behind.max() <= 3 * noise < rows.std()


def test_paths_say_what_computes_in_which_width(tmp_path: Path) -> None:
    narrow, wide = load(tmp_path, "cpu"), load(tmp_path, "cpu", "fp32")
    assert narrow.info.kernel_paths["linear.bfloat16"] == f"{STEP_PATH}, panels"
    before = dict(narrow.info.kernel_paths)
    for executor in (narrow, wide):
        executor.logits(random_tokens(20))
    assert narrow.info.kernel_paths == before
    assert wide.info.kernel_paths["linear.float32"] == "torch.linear"
    assert wide.info.kernel_paths["attention"] == "cpp"


def test_the_deterministic_variant_keeps_plain_forms(tmp_path: Path) -> None:
    runnable("cpu")
    model, _ = save_tiny_model(tmp_path)
    executor = TorchExecutor.load(model, "bf16", EngineConfig(num_kv_blocks=16, deterministic=True))
    assert executor.info.kernel_set == "cpu-deterministic"
    tokens = random_tokens(20)
    assert torch.equal(executor.logits(tokens), executor.logits(tokens, 7))
    assert executor.info.kernel_paths["linear.bfloat16"] == "cpp, fixed order"
