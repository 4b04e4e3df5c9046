"""A trace's shared blocks on the engine: it finds in its prefix cache what the ids promise."""

from __future__ import annotations

import random
from collections import deque
from pathlib import Path

import pytest
from tests.engine.tiny_model import save_tiny_model
from tests.traffic.lengths_files import block_row, imported, write_lines
from tests.traffic.test_shared_prefixes import ManyWords

from quantgate.traces.promised_sharing import promised_sharing
from quantgate.workload.build_plan import apply_transforms, build_plan
from quantgate.workload.prompt_encoder import PromptEncoder
from quantgate.workload.transforms import Clip, TransformContext
from quantgate_engine.clock import MonotonicClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.sampling_params import SamplingParams

BLOCK_TOKENS, KV_BLOCK = 24, 8


class FewWords(ManyWords):
    """As many words as the tiny model has tokens."""

    def __init__(self) -> None:
        super().__init__()
        self._words = self._words[:250]


def write_trace(path: Path) -> Path:
    """Conversations that grow by blocks of their own behind one block that all share, as Mooncake's do."""
    draw = random.Random(3)
    conversations: list[list[int]] = [[0] for _ in range(6)]
    rows = []
    for number in range(24):
        ids = conversations[draw.randrange(len(conversations))]
        ids.append(100 + number)
        tokens = len(ids) * BLOCK_TOKENS - draw.randrange(BLOCK_TOKENS)
        rows.append(block_row(number * 1000, tokens, 1 + draw.randrange(5), ids))
    return write_lines(path, *rows)


@pytest.mark.parametrize(
    ("kv_blocks", "together", "may_differ"),
    [
        (60, 1, 0.0),
        (60, 3, 0.0),
        # Here the running request's last block, which is not whole, takes a place that the promise gives to another.
        (40, 1, 0.01),
        (24, 1, 0.01),
    ],
)
def test_the_engine_finds_what_the_blocks_promise(
    tmp_path: Path, kv_blocks: int, together: int, may_differ: float
) -> None:
    trace = imported(write_trace(tmp_path / "m.jsonl"), block_tokens=BLOCK_TOKENS)
    clip = Clip(max_prompt_tokens=100, policy="cut")
    records, _ = apply_transforms(trace.records, [clip], TransformContext(PromptEncoder(None), 0))
    plan = build_plan(records, FewWords(), source="m.jsonl", source_sha256="")
    folder, _ = save_tiny_model(tmp_path)
    config = EngineConfig(
        max_active_requests=together,
        max_step_tokens=64,
        block_size=KV_BLOCK,
        num_kv_blocks=kv_blocks,
        cache=CacheSettings(prefix_sharing=True),
    )
    core = EngineCore(TorchExecutor.load(folder, "fp32", config), config, MonotonicClock())
    coming, running = deque(plan.requests), 0
    while coming or core.has_work:
        while coming and running < together:
            request = coming.popleft()
            params = SamplingParams(max_tokens=request.output_tokens, ignore_eos=True)
            core.add_request(request.request_id, request.prompt_token_ids, params)
            running += 1
        running -= len(core.step().ended)
    promised, endless = promised_sharing(records, KV_BLOCK, kv_blocks), promised_sharing(records, KV_BLOCK)
    assert 0.3 * endless.prompt_tokens < endless.cached_tokens < 0.9 * endless.prompt_tokens
    assert (promised == endless) == (kv_blocks == 60)
    assert abs(core.totals.cached_prompt_tokens - promised.cached_tokens) <= may_differ * promised.prompt_tokens
