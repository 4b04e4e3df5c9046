"""A real model whose requests share blocks, copy them on write and are swapped out: the tokens are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.test_numerics_transformers import expected_logits, random_tokens
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.clock import MonotonicClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.base import BlockCopy, CopyKind
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings


def test_copies_are_carried_out_in_their_order_in_every_layer(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    config = EngineConfig(num_kv_blocks=3, preemption=PreemptionSettings(mode="swap", host_blocks=2))
    executor = TorchExecutor.load(folder, "fp32", config)
    for number, layer in enumerate(executor._cache):
        for block in range(3):
            layer.keys[block].fill_(10 * number + block)
            layer.values[block].fill_(-10 * number - block)
    executor.copy_blocks(
        (
            BlockCopy("a", CopyKind.SWAP_OUT, source=0, target=1),
            BlockCopy("b", CopyKind.FORK, source=2, target=0),
            BlockCopy("a", CopyKind.SWAP_IN, source=1, target=2),
        )
    )
    for number, layer in enumerate(executor._cache):
        assert [float(block.mean()) for block in layer.keys] == [10 * number + 2, 10 * number + 1, 10 * number]
        assert [float(block.mean()) for block in layer.values] == [-10 * number - 2, -10 * number - 1, -10 * number]


@pytest.mark.parametrize("mode", ["recompute", "swap"])
def test_shared_forked_and_preempted_requests_draw_what_transformers_draws(mode: str, tmp_path: Path) -> None:
    folder, model = save_tiny_model(tmp_path)
    config = EngineConfig(
        max_active_requests=4,
        max_step_tokens=32,
        block_size=4,
        num_kv_blocks=24,
        admission=AdmissionSettings(estimator="optimistic"),
        cache=CacheSettings(prefix_sharing=True),
        preemption=PreemptionSettings(mode=mode, host_blocks=24),
    )
    core = EngineCore(TorchExecutor.load(folder, "fp32", config), config, MonotonicClock())
    prefix = random_tokens(18)
    params = SamplingParams(max_tokens=24, ignore_eos=True)
    requests = [core.add_request("parent", tuple(prefix), params)]
    requests.append(core.add_request("fork", tuple(prefix), params, RequestTerms(fork_of="parent")))
    for i in range(5):
        requests.append(core.add_request(f"r{i}", tuple(prefix + random_tokens(9, seed=i)), params))
    while core.has_work:
        core.step()
        core.check_integrity()
    assert core.totals.preemption_count > 0
    assert core.totals.cached_prompt_tokens > 0
    for request in requests:
        drawn = list(request.output_token_ids)
        expected = expected_logits(model, [*request.prompt_token_ids, *drawn])
        assert drawn == expected[len(request.prompt_token_ids) - 1 : -1].argmax(-1).tolist()
    assert requests[0].output_token_ids == requests[1].output_token_ids
