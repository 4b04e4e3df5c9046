"""What each scheme costs in quality, and what it saves: KL to 16 bits, bits per weight, bytes, tokens per second.

    python benchmarks/quantizers.py --checkpoints /tmp/quantized --output quantizers.json

Schemes that look at text are written as checkpoints first, each into a folder of its own name, and read from there the
next time. Texts that people wrote (those of agreement.py), which no calibration may hold, are given to all arms token
by token. The interval of the mean KL resamples sequences: what neighbours in a text share makes it no narrower.

Speed is that of one stream, the arms in turns: a prompt's first token, and the tokens after it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, get_args

# `benchmarks` is found from the folder above, and a script has only its own on the path.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.agreement import Tally, Tokens, compare_arms, cut, drawn_in_turn, written_texts
from benchmarks.output_file import output_file
from rich.console import Console

from quantgate.environment import capture_environment
from quantgate.progress import ProgressReporter
from quantgate.quantizing.quantize_model import QuantizeSettings, quantize_model
from quantgate.resources import bundled_root
from quantgate.stats.bootstrap import bootstrap_means, difference
from quantgate.workload.sample_drawing.texts import read_texts
from quantgate_engine import LLM, SamplingParams
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.quant.methods.named_recipes import NAMED_RECIPES
from quantgate_engine.quant.schemes import BASELINE, SCHEMES
from quantgate_kernels.kernel_set_names import KernelSetName

EVERY_METHOD = [name for name in NAMED_RECIPES if not name.startswith(("int4-g32-", "int4-g128"))]
"""Every method at groups of 64, and the nearest codes at 32; 128 do not divide the bundled model's rows."""
BLOCK_SIZE = 16
RESAMPLES = 4000


def checkpoint(arguments: argparse.Namespace, scheme: str) -> Path:
    folder: Path = arguments.checkpoints / scheme
    if not folder.exists():
        quantize_model(QuantizeSettings(arguments.model, scheme, folder), ProgressReporter(Console(stderr=True)))
    return folder


def loaded(arguments: argparse.Namespace, scheme: str) -> LLM:
    at_load = scheme in SCHEMES
    return LLM(
        arguments.model if at_load else str(checkpoint(arguments, scheme)),
        scheme if at_load else "stored",
        kernel_set=arguments.kernel_set,
        threads=arguments.threads,
        block_size=BLOCK_SIZE,
        num_kv_blocks=-(-(arguments.tokens + arguments.answer_tokens) // BLOCK_SIZE) + 1,
    )


def first_token_and_rest(llm: LLM, prompt: Tokens, tokens: int) -> tuple[float, float]:
    """Milliseconds until the first token, and tokens per second after it."""
    # The clock that the engine stamps its tokens with.
    started_ns = time.monotonic_ns()
    [output] = llm.generate([prompt], SamplingParams(max_tokens=tokens, temperature=0.0, ignore_eos=True))
    ended_ns, first_ns = time.monotonic_ns(), output.timing.first_token_ns
    assert first_ns is not None
    return (first_ns - started_ns) / 1e6, (tokens - 1) / (ended_ns - first_ns) * 1e9


def speeds(arguments: argparse.Namespace, llms: dict[str, LLM], prompt: Tokens) -> dict[str, dict[str, Any]]:
    """Medians of rounds. Prefix sharing is the engine's default: each round's prompt begins with a token of its own."""
    first: dict[str, list[float]] = {name: [] for name in llms}
    rate: dict[str, list[float]] = {name: [] for name in llms}
    for number in range(arguments.rounds + 1):
        for name, llm in llms.items():
            first_ms, tokens_per_s = first_token_and_rest(llm, [number + 10, *prompt[1:]], arguments.answer_tokens)
            if number > 0:  # The first round warms up.
                first[name].append(first_ms)
                rate[name].append(tokens_per_s)
    return {
        name: {
            "first_token_ms": median(first[name]),
            "decode_tokens_per_second": median(rate[name]),
            "each_round": {"first_token_ms": first[name], "decode_tokens_per_second": rate[name]},
        }
        for name in llms
    }


def divergence(tally: Tally, seed: int) -> dict[str, Any]:
    """Of the mean over all positions; clusters are sequences."""
    kl = np.concatenate(tally.divergences)
    sequences = np.repeat(np.arange(len(tally.divergences)), [len(each) for each in tally.divergences])
    found = bootstrap_means(
        np.zeros_like(kl), kl, sequences, difference, margin=0.0, confidence=0.95, resamples=RESAMPLES, seed=seed
    )
    return tally.figures() | {"mean_kl_95_nats": list(found.interval)}


def weights(llm: LLM, linear_weights: int) -> dict[str, Any]:
    return {
        "bits_per_weight": 8 * llm.info.linear_weight_bytes / linear_weights,
        "linear_weight_bytes": llm.info.linear_weight_bytes,
        "weight_bytes": llm.info.weight_bytes,
        "compute_dtype": llm.info.compute_dtype,
        "kernel_set": llm.info.kernel_set,
    }


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    folder = resolve_model(arguments.model)
    llms = {name: loaded(arguments, name) for name in (BASELINE, *(arguments.scheme or EVERY_METHOD))}
    baseline = llms[BASELINE]
    encoded = [
        baseline.tokenizer.encode(text, add_special_tokens=False)
        for text in written_texts(read_texts(bundled_root() / "replay_samples" / "texts"))
    ]
    sequences = drawn_in_turn([cut(tokens, arguments.tokens) for tokens in encoded], arguments.positions)
    arms = {name: llm.logits for name, llm in llms.items() if llm is not baseline}
    tallies = compare_arms(baseline.logits, arms, sequences)
    found = speeds(arguments, llms, sequences[0])
    linear_weights = baseline.info.linear_weight_bytes // 2
    return {
        "model": folder.name,
        "weights_sha256": folder.weights_sha256,
        "sequences": len(sequences),
        "positions": sum(len(tokens) - 1 for tokens in sequences),
        "prompt_tokens": len(sequences[0]),
        "rounds": arguments.rounds,
        "arms": {
            name: {
                **(divergence(tallies[name], seed=0) if name in tallies else {}),
                **weights(llm, linear_weights),
                **found[name],
            }
            for name, llm in llms.items()
        },
        "environment": capture_environment().model_dump(),
    }


def described(document: dict[str, Any]) -> str:
    """A Markdown table."""
    lines = [
        "| scheme | mean KL, nats (95 %) | same likeliest token | bits per weight | MB | first token, ms | tok/s |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in document["arms"].items():
        low, high = found.get("mean_kl_95_nats", (0.0, 0.0))
        quality = (
            f"{found['mean_kl_nats']:.4f} ({low:.4f} to {high:.4f}) | {found['top1_agreement']:.1%}"
            if "mean_kl_nats" in found
            else "0 | all"
        )
        lines.append(
            f"| `{name}` | {quality} | {found['bits_per_weight']:.2f} | {found['linear_weight_bytes'] / 1e6:.1f} | "
            f"{found['first_token_ms']:.0f} | {found['decode_tokens_per_second']:.0f} |"
        )
    return "\n".join(lines)


def read_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--scheme", action="append", help="once for each; every method where none is given")
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder that they are in, or are written to")
    parser.add_argument("--kernel-set", default="cpu", choices=get_args(KernelSetName))
    parser.add_argument("--tokens", type=int, default=512, help="length of a sequence, and of the prompt")
    parser.add_argument("--positions", type=int, default=None, help="stop after so many; all texts by default")
    parser.add_argument("--answer-tokens", type=int, default=65)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--output", type=output_file)
    return parser.parse_args(arguments)


def main() -> None:
    arguments = read_arguments()
    document = measure(arguments)
    print(described(document))
    if arguments.output:
        arguments.output.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
