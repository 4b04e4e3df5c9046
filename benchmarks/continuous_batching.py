"""What continuous batching gains: 32 requests together against the same 32 one after another.

    python benchmarks/continuous_batching.py --scheme fp16 --repeats 3

One process, one loaded model, the same kernels; only how many requests are in the engine at once differs. The two ways
take turns, and the figures are medians over the repeats. The prompts are seeded random tokens of 64 to 512, each
request draws 64 tokens (the end token is ignored), 16 are active at most.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
from collections.abc import Sequence
from statistics import median

import torch

from quantgate_engine import LLM, SamplingParams
from quantgate_engine.clock import MonotonicClock

FIRST_ORDINARY_TOKEN = 1000
"""Special tokens lie below."""


def draw_prompts(requests: int, shortest: int, longest: int, vocabulary: int, seed: int) -> list[list[int]]:
    generator = random.Random(seed)
    return [
        [generator.randrange(FIRST_ORDINARY_TOKEN, vocabulary) for _ in range(generator.randint(shortest, longest))]
        for _ in range(requests)
    ]


def output_tokens_per_second(llm: LLM, calls: Sequence[list[list[int]]], params: SamplingParams) -> float:
    """Output tokens of all `calls` of generate, made one after another, over the seconds that they took."""
    clock = MonotonicClock()
    started_ns = clock.now_ns()
    tokens = sum(len(output.token_ids) for prompts in calls for output in llm.generate(prompts, params))
    return tokens * 1e9 / (clock.now_ns() - started_ns)


def measure(arguments: argparse.Namespace) -> dict[str, object]:
    llm = LLM(arguments.model, arguments.scheme, max_active_requests=arguments.active, threads=arguments.threads)
    prompts = draw_prompts(arguments.requests, 64, 512, len(llm.tokenizer), arguments.seed)
    params = SamplingParams(max_tokens=arguments.output_tokens, ignore_eos=True)
    llm.generate(prompts[: arguments.active], SamplingParams(max_tokens=4, ignore_eos=True))  # warms caches
    together: list[float] = []
    one_by_one: list[float] = []
    for _ in range(arguments.repeats):
        together.append(output_tokens_per_second(llm, [prompts], params))
        one_by_one.append(output_tokens_per_second(llm, [[prompt] for prompt in prompts], params))
    return {
        "model": llm.info.name,
        "scheme": llm.info.scheme,
        "compute_dtype": llm.info.compute_dtype,
        "kernel_paths": dict(llm.info.kernel_paths),
        "requests": arguments.requests,
        "prompt_tokens": sum(len(prompt) for prompt in prompts),
        "output_tokens": arguments.requests * arguments.output_tokens,
        "max_active_requests": arguments.active,
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "torch": torch.__version__,
        "together_output_tok_s": {"median": median(together), "repeats": together},
        "one_by_one_output_tok_s": {"median": median(one_by_one), "repeats": one_by_one},
        "gain": median(together) / median(one_by_one),
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--scheme", default="fp16")
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--output-tokens", type=int, default=64)
    parser.add_argument("--active", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--seed", type=int, default=20260101)
    return parser.parse_args()


if __name__ == "__main__":
    print(json.dumps(measure(parse_arguments()), indent=2))
