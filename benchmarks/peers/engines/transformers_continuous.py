"""transformers' continuous batching over a paged KV cache (`generate_batch`)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.peers.adapter import BatchAnswer, Engine, SingleAnswer
from benchmarks.peers.description import EngineDescription, Precision, Widths
from benchmarks.peers.engines.transformers_generate import INSTALL, PADDING_ID
from benchmarks.peers.workload import Workload

PAGE_TOKENS = 32
PAGES = 512
STEP_TOKENS = 1024
"""On a CPU it cannot find out by itself how much memory it may take."""

NO_END_ID = -1

DESCRIPTION = EngineDescription(
    name="transformers-continuous",
    environment="transformers",
    distributions=("transformers", "torch"),
    precisions=(Precision("bf16", 16, Widths("bfloat16", "bfloat16", "bfloat16", "bfloat16")),),
    steps=(INSTALL,),
)


class TransformersContinuous:
    def __init__(self, model: Path, threads: int, active: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM, GenerationConfig
        from transformers.generation.configuration_utils import ContinuousBatchingConfig

        torch.set_num_threads(threads)
        self._config = GenerationConfig
        self._model = AutoModelForCausalLM.from_pretrained(
            model, dtype=torch.bfloat16, attn_implementation="paged|sdpa"
        ).eval()
        self._batching = ContinuousBatchingConfig(
            page_size=PAGE_TOKENS,
            num_blocks=PAGES,
            max_batch_tokens=STEP_TOKENS,
            max_requests_per_batch=active,
            allow_block_sharing=False,
        )

    def single(self, ids: list[int], tokens: int) -> SingleAnswer:
        started = time.perf_counter()
        [output] = self._generate([ids], tokens)
        total_s = time.perf_counter() - started
        times = [seen - started for seen in output.timestamps]
        return SingleAnswer(list(output.generated_tokens), times[0], total_s, times)

    def batch(self, prompts: list[list[int]], tokens: int) -> BatchAnswer:
        started = time.perf_counter()
        outputs = self._generate(prompts, tokens)
        return BatchAnswer([list(output.generated_tokens) for output in outputs], time.perf_counter() - started)

    def _generate(self, prompts: list[list[int]], tokens: int) -> list[Any]:
        config = self._config(max_new_tokens=tokens, do_sample=False, eos_token_id=NO_END_ID, pad_token_id=PADDING_ID)
        outputs = self._model.generate_batch(
            prompts,
            generation_config=config,
            continuous_batching_config=self._batching,
            record_timestamps=True,
            persistent_manager=True,
        )
        return sorted(outputs.values(), key=lambda output: _number_in(output.request_id))


def _number_in(request_id: str) -> int:
    """Requests are named by a prefix and their number; the outputs come in the order in which they ended."""
    return int("".join(character for character in request_id if character.isdigit()))


def load(precision: str, threads: int, workload: Workload, models: Path) -> Engine:
    DESCRIPTION.precision(precision)
    return TransformersContinuous(models / "hf", threads, workload.active)
