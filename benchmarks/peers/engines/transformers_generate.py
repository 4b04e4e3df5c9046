"""transformers' `generate`: batches padded on the left, one after the other."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.peers.adapter import BatchAnswer, Engine, SingleAnswer
from benchmarks.peers.description import EngineDescription, Precision, Widths, pip_install
from benchmarks.peers.workload import Workload

PADDING_ID = 2

INSTALL = pip_install("torch==2.13.0", "transformers==5.24.0", "accelerate==1.15.0")

DESCRIPTION = EngineDescription(
    name="transformers",
    environment="transformers",
    distributions=("transformers", "torch"),
    precisions=(Precision("bf16", 16, Widths("bfloat16", "bfloat16", "bfloat16", "bfloat16")),),
    steps=(INSTALL,),
)


class TokenTimes:
    """A streamer: `generate` calls it with the prompt, then with each token."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def put(self, _ids: Any) -> None:
        self.seen.append(time.perf_counter())

    def end(self) -> None:
        pass


class Transformers:
    def __init__(self, model: Path, threads: int, active: int) -> None:
        import torch
        from transformers import AutoModelForCausalLM, GenerationConfig

        torch.set_num_threads(threads)
        self._active = active
        self._torch, self._config = torch, GenerationConfig
        self._model = AutoModelForCausalLM.from_pretrained(
            model, dtype=torch.bfloat16, attn_implementation="sdpa"
        ).eval()

    def single(self, ids: list[int], tokens: int) -> SingleAnswer:
        streamer = TokenTimes()
        started = time.perf_counter()
        [answer] = self._generate([ids], tokens, streamer)
        total_s = time.perf_counter() - started
        times = [seen - started for seen in streamer.seen[1:]]
        return SingleAnswer(answer, times[0], total_s, times)

    def batch(self, prompts: list[list[int]], tokens: int) -> BatchAnswer:
        answers: list[list[int]] = []
        started = time.perf_counter()
        for first in range(0, len(prompts), self._active):
            answers += self._generate(prompts[first : first + self._active], tokens)
        return BatchAnswer(answers, time.perf_counter() - started)

    def _generate(self, prompts: list[list[int]], tokens: int, streamer: TokenTimes | None = None) -> list[list[int]]:
        longest = max(map(len, prompts))
        missing = [longest - len(prompt) for prompt in prompts]
        ids = self._torch.tensor([[PADDING_ID] * pad + prompt for pad, prompt in zip(missing, prompts, strict=True)])
        mask = self._torch.tensor([[0] * pad + [1] * (longest - pad) for pad in missing])
        config = self._config(max_new_tokens=tokens, do_sample=False, eos_token_id=None, pad_token_id=PADDING_ID)
        with self._torch.inference_mode():
            output = self._model.generate(
                input_ids=ids, attention_mask=mask, generation_config=config, streamer=streamer
            )
        return [row.tolist() for row in output[:, longest:]]


def load(precision: str, threads: int, workload: Workload, models: Path) -> Engine:
    DESCRIPTION.precision(precision)
    return Transformers(models / "hf", threads, workload.active)
