"""What an INT8 KV cache saves and costs: the same weights with keys and values in 16 bits and in 8.

    python benchmarks/int8_kv.py --output benchmarks/results/int8-kv.json

Bytes per token count scales. Quality is measured as a suite's distribution tier does: over the suite's prompts (the
quick suite's by default), each with the greedy answer of the 16-bit cache, both caches are asked for their next-token
distributions at every answer token. Chunked prefill reads the cache too, so that first tokens feel it like the others.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

# The modules beside this script are read as parts of `benchmarks`, by the tests too.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.output_file import output_file

from quantgate.environment import capture_environment
from quantgate.quality.position_comparison import PositionComparison
from quantgate.quality.whole_divergence import compare_positions
from quantgate.run.workload_phase import plan_workload, read_traffic
from quantgate.suite import load_suite
from quantgate_engine import LLM, SamplingParams
from quantgate_engine.executor.compute_thread import on_compute_thread

SUITE = Path(__file__).parents[1] / "suites" / "quick.yaml"
LARGEST_SHARE_OF_BYTES = 0.56
LEAST_FIRST_TOKEN_AGREEMENT = 0.97
LARGEST_MEAN_KL = 0.02

SIXTEEN_BIT = ("float16", "bfloat16")

Prompt = tuple[int, ...]


def suite_prompts(suite: Path, llm: LLM) -> list[Prompt]:
    """The prompts of the plan that the suite's arms replay, in its order."""
    loaded = load_suite(suite)
    workload, seed = loaded.suite.workload, loaded.suite.seed
    traffic = read_traffic(loaded.trace_path, workload, llm.tokenizer, seed, columns=loaded.columns_path)
    plan = plan_workload(traffic, workload, llm.tokenizer, seed, llm.max_context_tokens)
    return [request.prompt_token_ids for request in plan.requests]


def compare_answers(
    sixteen_bit: LLM, int8: LLM, prompts: Sequence[Prompt], answer_tokens: int
) -> list[PositionComparison]:
    """One comparison a prompt, over the 16-bit cache's greedy answer."""
    answers = sixteen_bit.generate(prompts, SamplingParams(max_tokens=answer_tokens, ignore_eos=True))
    compared = []
    for prompt, answer in zip(prompts, answers, strict=True):
        [expected], [found] = (llm.continuation_logits(prompt, [answer.token_ids]) for llm in (sixteen_bit, int8))
        compared.append(
            on_compute_thread(lambda p=expected, q=found, tokens=answer.token_ids: compare_positions(p, q, tokens))
        )
    return compared


def summarised(compared: Sequence[PositionComparison], share_of_bytes: float) -> dict[str, Any]:
    divergences = np.concatenate([comparison.kl for comparison in compared])
    same = np.concatenate([comparison.same_top1 for comparison in compared])
    figures = {
        "kv_bytes_share": share_of_bytes,
        "first_token_agreement": fmean(float(comparison.same_top1[0]) for comparison in compared),
        "mean_kl_nats": float(divergences.mean()),
        "first_token_mean_kl_nats": fmean(float(comparison.kl[0]) for comparison in compared),
        "p99_kl_nats": float(np.quantile(divergences, 0.99)),
        "largest_kl_nats": float(divergences.max()),
        "top1_agreement": float(same.mean()),
        "positions": int(same.size),
    }
    kept = (
        figures["kv_bytes_share"] <= LARGEST_SHARE_OF_BYTES
        and figures["first_token_agreement"] >= LEAST_FIRST_TOKEN_AGREEMENT
        and figures["mean_kl_nats"] <= LARGEST_MEAN_KL
    )
    return {**figures, "bars_kept": kept}


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    settings = {"max_active_requests": 16, "max_step_tokens": 256, "max_context_tokens": 1024, "num_kv_blocks": 640}
    sixteen_bit = LLM(arguments.model, arguments.scheme, **settings)
    if sixteen_bit.info.kv_dtype not in SIXTEEN_BIT:
        raise SystemExit(
            f"{arguments.scheme} computes in {sixteen_bit.info.kv_dtype} on this machine; try --scheme bf16"
        )
    int8 = LLM(arguments.model, arguments.scheme, kv_dtype="int8", **settings)
    prompts = suite_prompts(arguments.suite, sixteen_bit)[: arguments.prompts]
    compared = compare_answers(sixteen_bit, int8, prompts, arguments.answer_tokens)
    return {
        "model": sixteen_bit.info.name,
        "scheme": sixteen_bit.info.scheme,
        "suite": arguments.suite.stem,
        "prompts": len(prompts),
        "prompt_tokens": sum(map(len, prompts)),
        "answer_tokens": arguments.answer_tokens,
        "bars": {
            "kv_bytes_share": LARGEST_SHARE_OF_BYTES,
            "first_token_agreement": LEAST_FIRST_TOKEN_AGREEMENT,
            "mean_kl_nats": LARGEST_MEAN_KL,
        },
        "found": summarised(compared, int8.info.kv_bytes_per_token / sixteen_bit.info.kv_bytes_per_token),
        "arms": {
            name: {
                "kv_dtype": llm.info.kv_dtype,
                "kv_bytes_per_token": llm.info.kv_bytes_per_token,
                "compute_dtype": llm.info.compute_dtype,
                "weights_sha256": llm.info.weights_sha256,
                "kernel_paths": dict(llm.info.kernel_paths),
            }
            for name, llm in (("sixteen_bit", sixteen_bit), ("int8", int8))
        },
        "environment": capture_environment().model_dump(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--scheme", default="fp16")
    parser.add_argument("--suite", type=Path, default=SUITE)
    parser.add_argument("--prompts", type=int, default=None, help="only the first so many prompts")
    parser.add_argument("--answer-tokens", type=int, default=24)
    parser.add_argument("--output", type=output_file)
    arguments = parser.parse_args()
    document = json.dumps(measure(arguments), indent=2)
    print(document)
    if arguments.output:
        arguments.output.write_text(document + "\n")


if __name__ == "__main__":
    main()
