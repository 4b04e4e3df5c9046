"""How fast long contexts decode with keys and values in 16 bits and in INT8, in turns on one machine.

    python benchmarks/long_contexts.py --output benchmarks/results/long-contexts.json

Prompts have nothing in common, so that each request reads blocks of its own. They are computed once: later rounds find
their blocks by prefix sharing. A round's decode time is that of answers of many tokens less that of answers of one, for
each cache in turn; the speed is the median of rounds, and the ratio the median of the rounds' own ratios.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

# `benchmarks` is found from the folder above, and a script has only its own on the path.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.output_file import output_file

from quantgate.environment import capture_environment
from quantgate_engine import LLM, SamplingParams
from quantgate_engine.kv.settings import CacheSettings

LEAST_RATIO = 1.3
BLOCK_SIZE = 16

Prompt = tuple[int, ...]


def seconds_of(llm: LLM, prompts: list[Prompt], tokens: int) -> float:
    begin = time.perf_counter()
    llm.generate(prompts, SamplingParams(max_tokens=tokens, temperature=0.0, ignore_eos=True))
    return time.perf_counter() - begin


def tokens_per_second(llm: LLM, prompts: list[Prompt], tokens: int) -> float:
    """Of decoding alone: what stands before the first token is the same in both measurements."""
    first = seconds_of(llm, prompts, 1)
    return len(prompts) * (tokens - 1) / (seconds_of(llm, prompts, tokens) - first)


def loaded(arguments: argparse.Namespace, kv_dtype: str) -> LLM:
    longest = arguments.context + arguments.answer_tokens
    return LLM(
        arguments.model,
        arguments.scheme,
        kv_dtype=kv_dtype,
        kernel_set=arguments.kernel_set,
        threads=arguments.threads,
        max_active_requests=arguments.requests,
        max_step_tokens=1024,
        max_context_tokens=longest + BLOCK_SIZE,
        num_kv_blocks=(arguments.requests + 1) * (longest // BLOCK_SIZE + 2),
        cache=CacheSettings(prefix_sharing=True),
    )


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    draw = random.Random(0)
    prompts = [tuple(draw.randrange(1000, 40_000) for _ in range(arguments.context)) for _ in range(arguments.requests)]
    arms = {"sixteen_bit": loaded(arguments, "auto"), "int8": loaded(arguments, "int8")}
    for llm in arms.values():
        seconds_of(llm, prompts, 1)
    speeds: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(arguments.rounds):
        for name, llm in arms.items():
            speeds[name].append(tokens_per_second(llm, prompts, arguments.answer_tokens))
    ratio = median(new / old for new, old in zip(speeds["int8"], speeds["sixteen_bit"], strict=True))
    return {
        "requests": arguments.requests,
        "context_tokens": arguments.context,
        "answer_tokens": arguments.answer_tokens,
        "rounds": arguments.rounds,
        "bar": LEAST_RATIO,
        "ratio": ratio,
        "bar_kept": ratio >= LEAST_RATIO,
        "arms": {
            name: {
                "tokens_per_second": median(speeds[name]),
                "each_round": speeds[name],
                "kv_dtype": llm.info.kv_dtype,
                "scheme": llm.info.scheme,
                "kernel_paths": dict(llm.info.kernel_paths),
            }
            for name, llm in arms.items()
        },
        "environment": capture_environment().model_dump(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--scheme", default="fp16")
    parser.add_argument("--kernel-set", default="auto")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--requests", type=int, default=16)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--answer-tokens", type=int, default=33)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=output_file)
    arguments = parser.parse_args()
    document = json.dumps(measure(arguments), indent=2)
    print(document)
    if arguments.output:
        arguments.output.write_text(document + "\n")


if __name__ == "__main__":
    main()
