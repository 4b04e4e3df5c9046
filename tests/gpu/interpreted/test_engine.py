"""The engine over the Triton kernels: the tokens of `reference`, and with `deterministic` those of any company."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.engine.deterministic_arm import Arm, answers, draw_prompts
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.kv.settings import KVDtypeName
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_kernels.gpu.kernels import TritonKernels
from quantgate_kernels.gpu.launch_table import LARGEST_GROUP, LARGEST_HEAD_DIM
from quantgate_kernels.kernel_set_names import KernelSetName
from quantgate_kernels.types import AttentionBatch

PROMPTS = draw_prompts(5, longest=40, vocabulary=257)
CHUNK = 24
OPERATIONS = ("rms_norm", "rope_and_write_kv", "attention", "silu_and_mul")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    saved, _ = save_tiny_model(tmp_path_factory.mktemp("model"), num_hidden_layers=2)
    return saved


def config(kernel_set: KernelSetName, kv_dtype: KVDtypeName) -> EngineConfig:
    return EngineConfig(
        kernel_set=kernel_set, kv_dtype=kv_dtype, max_step_tokens=CHUNK, num_kv_blocks=32, max_active_requests=5
    )


@pytest.mark.parametrize("kv_dtype", ["auto", "int8"])
def test_tokens_are_those_of_the_reference(
    kv_dtype: KVDtypeName, folder: ModelFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[int, ...]] = []
    attention = TritonKernels.attention

    def watched(self: TritonKernels, q: torch.Tensor, cache: object, batch: AttentionBatch, *others: object) -> object:
        steps.append(tuple(batch.query_starts.diff().tolist()))
        return attention(self, q, cache, batch, *others)

    monkeypatch.setattr(TritonKernels, "attention", watched)
    drawn = {}
    for kernel_set in ("reference", "triton"):
        settings = config(kernel_set, kv_dtype)
        executor = TorchExecutor.load(folder, "fp32", settings)
        requests, _ = answers(executor, settings, PROMPTS, range(5))
        drawn[kernel_set] = {index: [token.token_id for token in tokens] for index, tokens in requests.items()}
    assert drawn["triton"] == drawn["reference"]
    assert any(min(rows) == 1 and max(rows) > 1 for rows in steps)
    paths = executor.info.kernel_paths
    assert executor.info.kernel_set == "triton"
    assert all(paths[operation].startswith("triton") for operation in OPERATIONS)
    assert paths["attention"].endswith(", int8 kv") == (kv_dtype == "int8")


@pytest.mark.parametrize("kv_dtype", ["auto", "int8"])
def test_company_and_chunks_change_no_token_of_the_deterministic_set(
    kv_dtype: KVDtypeName, folder: ModelFolder
) -> None:
    arm = Arm("triton", "fp32", kv_dtype=kv_dtype)
    executor = arm.executor(folder)
    assert executor.info.kernel_set == "triton-deterministic"
    alone, _ = answers(executor, arm.config(), PROMPTS[:3], range(3), together=False)
    settings = {"max_step_tokens": 7, "max_active_requests": 3}
    together, _ = answers(arm.executor(folder, **settings), arm.config(**settings), PROMPTS[:3], [2, 0, 1])
    assert together == alone


@pytest.mark.parametrize(
    "shape",
    [
        {"head_dim": LARGEST_HEAD_DIM + 32},
        {"head_dim": 16, "num_key_value_heads": 1, "num_attention_heads": 2 * LARGEST_GROUP},
    ],
    ids=["too wide", "too many to a key head"],
)
def test_heads_without_launch_parameters_take_the_path_of_the_reference(shape: dict[str, int], tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path, num_hidden_layers=1, **shape)
    logits = {}
    for kernel_set in ("reference", "triton"):
        executor = TorchExecutor.load(folder, "fp32", EngineConfig(kernel_set=kernel_set, num_kv_blocks=8))
        logits[kernel_set] = executor.logits([5, 9, 200, 31])
    torch.testing.assert_close(logits["triton"], logits["reference"], atol=1e-4, rtol=1e-4)
    assert executor.info.kernel_paths["attention"] != "triton"
