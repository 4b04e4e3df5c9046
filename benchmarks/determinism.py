"""What changes a request's answer, without the deterministic mode and with it, and what the mode costs.

    python benchmarks/determinism.py --scheme fp16 --requests 50
    python benchmarks/determinism.py --scheme fp16 --requests 50 --temperature 1 --output-tokens 12

Each request is first answered alone. Then all run together in random order, five times, and in small chunks, with cache
hits, preempted and computed again, and swapped out and in. An answer is compared with the one that its request got
alone: token by token up to the first that differs, and the log-probability of each of these tokens bit by bit. Above
temperature 0, each request draws by a seed of its own. The cost is the processor's time for all requests together,
which other work on the machine hardly changes.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from quantgate_engine import LLM, EngineConfig, SamplingParams
from quantgate_engine.executor.base import SampledToken
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.outputs import RequestOutput
from quantgate_engine.prompts import encode_prompt
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings

SAMPLE = Path(__file__).resolve().parent.parent / "replay_samples" / "quick.jsonl"
OPTIMISTIC = AdmissionSettings(estimator="optimistic")
FEW_BLOCKS = 64
"""Less than half of what sixteen of the requests want."""

TOGETHER = "together"
REPEATS = 5
"""Of `TOGETHER`; the other ways are gone once."""

SCENARIOS: dict[str, dict[str, Any]] = {
    TOGETHER: {},
    "in chunks of at most 32 tokens": {"max_step_tokens": 32},
    "with cache hits": {"cache": CacheSettings(prefix_sharing=True)},
    "preempted and computed again": {"num_kv_blocks": FEW_BLOCKS, "admission": OPTIMISTIC},
    "swapped out and in": {
        "num_kv_blocks": FEW_BLOCKS,
        "admission": OPTIMISTIC,
        "preemption": PreemptionSettings(mode="swap", host_blocks=4 * FEW_BLOCKS),
    },
}


@dataclass
class Differences:
    """Against the answers that each request got alone; log-probabilities where the tokens before them are the same."""

    requests: int = 0
    requests_with_other_tokens: int = 0
    compared_log_probs: int = 0
    other_log_probs: int = 0
    largest_difference: float = 0.0
    positions: list[int] = field(default_factory=list)

    def add(self, alone: Sequence[SampledToken], given: Sequence[SampledToken]) -> None:
        self.requests += 1
        for position, (expected, token) in enumerate(zip(alone, given, strict=True)):
            if token.token_id != expected.token_id:
                self.requests_with_other_tokens += 1
                self.positions.append(position)
                return
            assert token.logprob is not None
            assert expected.logprob is not None
            self.compared_log_probs += 1
            self.other_log_probs += token.logprob != expected.logprob
            self.largest_difference = max(self.largest_difference, abs(token.logprob - expected.logprob))

    def figures(self) -> dict[str, object]:
        return {
            "requests": self.requests,
            "requests_with_other_tokens": self.requests_with_other_tokens,
            "first_other_token_median": sorted(self.positions)[len(self.positions) // 2] if self.positions else None,
            "compared_log_probs": self.compared_log_probs,
            "other_log_probs": self.other_log_probs,
            "largest_log_prob_difference": self.largest_difference,
        }


def sample_prompts(llm: LLM, requests: int) -> list[tuple[int, ...]]:
    """The first prompts of the quick sample, through the model's chat template."""
    rows = map(json.loads, SAMPLE.read_text(encoding="utf-8").splitlines())
    messages = [row["messages"] for row in rows if "messages" in row][:requests]
    return [encode_prompt(llm.tokenizer, each) for each in messages]


def outputs_of(answers: Sequence[RequestOutput]) -> list[tuple[SampledToken, ...]]:
    return [answer.logprobs or () for answer in answers]


def measure_mode(arguments: argparse.Namespace, deterministic: bool) -> dict[str, object]:
    common: dict[str, Any] = {"threads": arguments.threads, "deterministic": deterministic}
    llm = LLM(arguments.model, arguments.scheme, EngineConfig(**common))
    prompts = sample_prompts(llm, arguments.requests)
    params = [
        SamplingParams(
            max_tokens=arguments.output_tokens,
            ignore_eos=True,
            logprobs=0,
            temperature=arguments.temperature,
            seed=number,
        )
        for number in range(len(prompts))
    ]
    alone = outputs_of([llm.generate([prompt], own)[0] for prompt, own in zip(prompts, params, strict=True)])
    table: dict[str, object] = {}
    seconds: list[float] = []
    for name, settings in SCENARIOS.items():
        llm = LLM(arguments.model, arguments.scheme, EngineConfig(**common, **settings))
        differences = Differences()
        for repeat in range(REPEATS if name == TOGETHER else 1):
            order = random.Random(arguments.seed + repeat).sample(range(len(prompts)), len(prompts))
            started_s = time.process_time()
            given = outputs_of(llm.generate([prompts[index] for index in order], [params[index] for index in order]))
            if name == TOGETHER:
                seconds.append(time.process_time() - started_s)
            for index, tokens in zip(order, given, strict=True):
                differences.add(alone[index], tokens)
        totals = llm.core.totals
        table[name] = {
            **differences.figures(),
            "preemptions": totals.preemption_count,
            "cached_prompt_tokens": totals.cached_prompt_tokens,
        }
    return {
        "kernel_set": llm.info.kernel_set,
        "together_cpu_seconds_best": round(min(seconds), 2),
        "against_alone": table,
        "kernel_paths": dict(llm.info.kernel_paths),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--scheme", default="fp16")
    parser.add_argument("--requests", type=int, default=50)
    parser.add_argument("--output-tokens", type=int, default=32)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    result = {
        "model": arguments.model,
        "scheme": arguments.scheme,
        "requests": arguments.requests,
        "repeats": REPEATS,
        "output_tokens": arguments.output_tokens,
        "temperature": arguments.temperature,
        "off": measure_mode(arguments, deterministic=False),
        "on": measure_mode(arguments, deterministic=True),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
