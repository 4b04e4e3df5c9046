"""Engines whose keys and values are int8: what they occupy, and how close they stay to 32 bits."""

from __future__ import annotations

import pytest
import torch
from tests.engine.against_transformers import divergence, random_tokens
from tests.engine.kernel_sets import NAMED_SETS, runnable
from tests.engine.tiny_model import TINY_SHAPE, save_tiny_model

from quantgate_engine.clock import MonotonicClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor import machine_limits
from quantgate_engine.executor.base import BlockCopy, CopyKind
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings
from quantgate_kernels.kernel_set_names import KernelSetName

HEAD_DIM = TINY_SHAPE["hidden_size"] // TINY_SHAPE["num_attention_heads"]
ROWS_PER_TOKEN = TINY_SHAPE["num_hidden_layers"] * TINY_SHAPE["num_key_value_heads"] * 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    saved, _ = save_tiny_model(tmp_path_factory.mktemp("model"))
    return saved


def test_what_is_told_is_what_is_allocated(folder: ModelFolder) -> None:
    config = EngineConfig(kv_dtype="int8", num_kv_blocks=5, block_size=8)
    executor = TorchExecutor.load(folder, "bf16", config)
    allocated = sum(tensor.nbytes for layer in executor._cache for tensor in layer.tensors())
    assert executor.info.kv_dtype == "int8"
    assert executor.info.kv_bytes_per_token == ROWS_PER_TOKEN * (HEAD_DIM + 4)
    assert allocated == 5 * 8 * executor.info.kv_bytes_per_token
    sixteen_bit = TorchExecutor.load(folder, "bf16", EngineConfig(num_kv_blocks=5))
    assert sixteen_bit.info.kv_bytes_per_token == ROWS_PER_TOKEN * 2 * HEAD_DIM
    assert executor.cache_identity != sixteen_bit.cache_identity


def test_memory_is_counted_with_scales(folder: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(**settings: int) -> TorchExecutor:
        return TorchExecutor.load(folder, "bf16", EngineConfig(kv_dtype="int8", block_size=10, **settings))

    monkeypatch.setattr(machine_limits, "free_bytes", lambda _device: 10 * ROWS_PER_TOKEN * (HEAD_DIM + 4) * 7)
    assert load(num_kv_blocks=7).num_blocks == 7
    with pytest.raises(ConfigurationError, match=r"The KV cache \(8 blocks of 10 tokens\) needs"):
        load(num_kv_blocks=8)


def test_an_unknown_dtype_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ConfigurationError, match=r"^EngineConfig.kv_dtype is 'int4'; expected one of auto, int8\.$"):
        EngineConfig(kv_dtype="int4")  # type: ignore[arg-type]  # as it may come from a file


@pytest.mark.parametrize("chunk_tokens", [None, 7])
@pytest.mark.parametrize("kernel_set", NAMED_SETS)
def test_logits_come_close_to_those_of_whole_numbers(
    kernel_set: KernelSetName, chunk_tokens: int | None, folder: ModelFolder
) -> None:
    tokens = random_tokens(70)
    config = EngineConfig(kernel_set=runnable(kernel_set), num_kv_blocks=16)
    whole = TorchExecutor.load(folder, "fp32", config).logits(tokens, chunk_tokens)
    executor = TorchExecutor.load(folder, "fp32", EngineConfig(kernel_set=kernel_set, kv_dtype="int8"))
    coded = executor.logits(tokens, chunk_tokens)
    assert 1e-7 < divergence(whole, coded) < 0.01
    assert executor.info.kernel_paths["rope_and_write_kv"].endswith(", int8 kv")
    assert executor.info.kernel_paths["attention"].endswith(", int8 kv")


def test_kernel_sets_agree(folder: ModelFolder) -> None:
    """They may turn a key to other last bits, and so to the neighbouring code, but no further apart."""
    tokens = random_tokens(60)
    reference, compiled = (
        TorchExecutor.load(folder, "fp32", EngineConfig(kernel_set=runnable(name), kv_dtype="int8")).logits(tokens, 1)
        for name in ("reference", "cpu")
    )
    assert divergence(reference, compiled) < 1e-4


def test_continuations_share_a_prompt(folder: ModelFolder) -> None:
    """The prompt's last block is partly filled: its codes and scales are copied for each continuation."""
    executor = TorchExecutor.load(folder, "fp32", EngineConfig(kv_dtype="int8", num_kv_blocks=16))
    prompt = random_tokens(21)
    options = [(7, 9, 11), (5, 4), (6,)]
    for option, logits in zip(options, executor.continuation_logits(prompt, options), strict=True):
        alone = executor.logits([*prompt, *option[:-1]])[len(prompt) - 1 :]
        assert divergence(alone, logits) < 1e-4


def test_copies_carry_scales_in_every_layer(folder: ModelFolder) -> None:
    config = EngineConfig(kv_dtype="int8", num_kv_blocks=3, preemption=PreemptionSettings(mode="swap", host_blocks=2))
    executor = TorchExecutor.load(folder, "fp32", config)
    for number, layer in enumerate(executor._cache):
        for place, tensor in enumerate(layer.tensors()):
            for block in range(3):
                tensor[block].fill_(30 * number + 7 * place + block)
    executor.copy_blocks(
        (
            BlockCopy("a", CopyKind.SWAP_OUT, source=0, target=1),
            BlockCopy("b", CopyKind.FORK, source=2, target=0),
            BlockCopy("a", CopyKind.SWAP_IN, source=1, target=2),
        )
    )
    for number, layer in enumerate(executor._cache):
        assert len(layer.tensors()) == 4
        for place, tensor in enumerate(layer.tensors()):
            first = 30 * number + 7 * place
            assert [float(block.float().mean()) for block in tensor] == [first + 2, first + 1, first]


@pytest.mark.parametrize("mode", ["recompute", "swap"])
@pytest.mark.parametrize("kernel_set", NAMED_SETS)
def test_shared_forked_and_preempted_requests_draw_what_their_logits_say(
    kernel_set: KernelSetName, mode: str, folder: ModelFolder
) -> None:
    """Rows computed in other company may get a neighbouring code: tokens are near-best, not always the best."""
    config = EngineConfig(
        max_active_requests=4,
        max_step_tokens=32,
        block_size=4,
        num_kv_blocks=24,
        kernel_set=runnable(kernel_set),
        kv_dtype="int8",
        admission=AdmissionSettings(estimator="optimistic"),
        cache=CacheSettings(prefix_sharing=True),
        preemption=PreemptionSettings(mode=mode, host_blocks=24),
    )
    executor = TorchExecutor.load(folder, "fp32", config)
    core = EngineCore(executor, config, MonotonicClock())
    prefix, params = random_tokens(18), SamplingParams(max_tokens=24, ignore_eos=True)
    requests = [core.add_request("parent", tuple(prefix), params)]
    requests.append(core.add_request("fork", tuple(prefix), params, RequestTerms(fork_of="parent")))
    for i in range(5):
        requests.append(core.add_request(f"r{i}", tuple(prefix + random_tokens(9, seed=i)), params))
    while core.has_work:
        core.step()
        core.check_integrity()
    assert core.totals.preemption_count > 0
    assert core.totals.cached_prompt_tokens > 0
    assert executor.info.kernel_paths["attention"].endswith(", int8 kv")
    for request in requests:
        drawn = torch.tensor(request.output_token_ids)
        rows = executor.logits([*request.prompt_token_ids, *drawn.tolist()])[len(request.prompt_token_ids) - 1 : -1]
        behind = rows.amax(-1) - rows.gather(-1, drawn.unsqueeze(-1)).squeeze(-1)
        assert behind.max() < 0.05
