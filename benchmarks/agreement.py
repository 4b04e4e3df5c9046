"""How often a scheme finds the same token likeliest as transformers does in float32, beside transformers in bfloat16.

    python benchmarks/agreement.py --scheme fp16 --scheme int8-w8a8 --output agreement.json

Texts that people wrote (replay_samples/texts) are cut into sequences. Each is given to all arms token by token, their
own choices aside: quantgate reads it through its paged path, in chunks of the engine's step budget or of
`--chunk-tokens` (1: as decoding computes). transformers in bfloat16 rounds its logits to 16 bits, so that some of its
likeliest tokens are ties; the first of them counts, as in a greedy choice.

Every position counts once in each arm, so that two arms are compared by the positions where exactly one of them agrees
with float32. The interval (Tango's) takes positions to be independent, and is a little too narrow for it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, get_args

# The modules beside this script are read as parts of `benchmarks`, by the tests too.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import torch
from benchmarks.output_file import output_file
from numpy.typing import NDArray
from torch import Tensor

from quantgate.environment import capture_environment
from quantgate.quality.position_comparison import PositionComparison
from quantgate.quality.whole_divergence import compare_positions
from quantgate.resources import bundled_root
from quantgate.stats.tango import tango_interval
from quantgate.workload.sample_drawing.texts import SampleTexts, read_texts
from quantgate_engine import LLM
from quantgate_engine.executor.compute_thread import on_compute_thread
from quantgate_engine.model.catalog import resolve_model
from quantgate_kernels.kernel_set_names import KernelSetName

BASELINE = "transformers bfloat16"
BLOCK_SIZE = 16

Tokens = list[int]
LogitsOf = Callable[[Tokens], Tensor]
"""float32 [tokens, vocabulary]; row i is the view of token i + 1."""


@dataclass
class Tally:
    """An arm against float32, position by position."""

    same_top1: list[NDArray[np.bool_]] = field(default_factory=list)
    divergences: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, compared: PositionComparison) -> None:
        self.same_top1.append(compared.same_top1)
        self.divergences.append(compared.kl)

    def agrees(self) -> NDArray[np.bool_]:
        return np.concatenate(self.same_top1)

    def figures(self) -> dict[str, float | int]:
        agrees, divergences = self.agrees(), np.concatenate(self.divergences)
        return {
            "agreeing": int(agrees.sum()),
            "positions": int(agrees.size),
            "top1_agreement": float(agrees.mean()),
            "mean_kl_nats": float(divergences.mean()),
            "p99_kl_nats": float(np.quantile(divergences, 0.99)),
        }


def paired_difference(candidate: NDArray[np.bool_], baseline: NDArray[np.bool_]) -> dict[str, Any]:
    """Candidate's agreement less the baseline's, in points (hundredths of all positions)."""
    only_baseline, only_candidate = int((baseline & ~candidate).sum()), int((candidate & ~baseline).sum())
    loss = tango_interval(only_baseline, only_candidate, candidate.size)
    return {
        "difference_points": 100 * (only_candidate - only_baseline) / candidate.size,
        "interval_95_points": [-100 * loss.upper, -100 * loss.lower],
        "only_candidate_agrees": only_candidate,
        "only_baseline_agrees": only_baseline,
        "both_agree": int((candidate & baseline).sum()),
        "neither_agrees": int((~candidate & ~baseline).sum()),
    }


def written_texts(texts: SampleTexts) -> list[str]:
    """One long text each of documents with their questions, of chats, and of programming tasks."""
    documents = (
        "\n".join([passage.text, *(f"Q: {question.ask}\nA: {question.answer}" for question in passage.questions)])
        for passage in texts.passages
    )
    chats = (
        "\n".join(f"{'AB'[turn % 2]}: {said}" for turn, said in enumerate(dialogue))
        for dialogue in texts.chats.dialogues
    )
    code = ("\n".join(filter(None, (task.ask, task.given))) for task in texts.code)
    return ["\n\n".join(parts) for parts in (documents, chats, code)]


def cut(tokens: Tokens, length: int) -> list[Tokens]:
    """Pieces of `length` tokens and the rest, unless that is a single token, which predicts nothing."""
    pieces = [tokens[start : start + length] for start in range(0, len(tokens), length)]
    return [piece for piece in pieces if len(piece) > 1]


def drawn_in_turn(texts: Iterable[Sequence[Tokens]], positions: int | None) -> list[Tokens]:
    """One sequence of each text in turn, until they have so many positions (None: all); n tokens have n - 1."""
    sequences: list[Tokens] = []
    for sequence in filter(None, chain.from_iterable(zip_longest(*texts))):
        if positions is not None and sum(len(each) - 1 for each in sequences) >= positions:
            break
        sequences.append(sequence)
    return sequences


def compare_arms(reference: LogitsOf, arms: Mapping[str, LogitsOf], sequences: Sequence[Tokens]) -> dict[str, Tally]:
    """Logits of one sequence stand in memory at a time."""
    tallies = {name: Tally() for name in arms}
    for tokens in sequences:
        expected = reference(tokens)[:-1]
        for name, logits_of in arms.items():
            found = logits_of(tokens)[:-1]
            tallies[name].add(on_compute_thread(lambda p=expected, q=found, t=tokens[1:]: compare_positions(p, q, t)))
    return tallies


def transformers_logits(folder: Path, dtype: torch.dtype) -> LogitsOf:
    from transformers import AutoModelForCausalLM

    model: Any = on_compute_thread(lambda: AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval())

    def logits_of(tokens: Tokens) -> Tensor:
        with torch.inference_mode():
            logits: Tensor = model(torch.tensor([tokens])).logits[0]
            return logits.float()

    return lambda tokens: on_compute_thread(lambda: logits_of(tokens))


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    folder = resolve_model(arguments.model)
    llms = {
        f"quantgate {scheme}": LLM(
            arguments.model, scheme, kernel_set=arguments.kernel_set, threads=arguments.threads,
            block_size=BLOCK_SIZE, num_kv_blocks=-(-arguments.tokens // BLOCK_SIZE),
        )
        for scheme in arguments.scheme or ["fp16"]
    }  # fmt: skip
    tokenizer = next(iter(llms.values())).tokenizer
    written = written_texts(read_texts(bundled_root() / "replay_samples" / "texts"))
    encoded = [tokenizer.encode(text, add_special_tokens=False) for text in written]
    sequences = drawn_in_turn([cut(tokens, arguments.tokens) for tokens in encoded], arguments.positions)
    arms: dict[str, LogitsOf] = {BASELINE: transformers_logits(folder.path, torch.bfloat16)}
    for name, llm in llms.items():
        arms[name] = lambda tokens, llm=llm: llm.logits(tokens, arguments.chunk_tokens)
    tallies = compare_arms(transformers_logits(folder.path, torch.float32), arms, sequences)
    return {
        "model": folder.name,
        "weights_sha256": folder.weights_sha256,
        "sequences": len(sequences),
        "tokens": sum(map(len, sequences)),
        "chunk_tokens": arguments.chunk_tokens or next(iter(llms.values())).config.max_step_tokens,
        "arms": {name: tally.figures() for name, tally in tallies.items()},
        f"against {BASELINE}": {
            name: paired_difference(tallies[name].agrees(), tallies[BASELINE].agrees()) for name in llms
        },
        "quantgate": {
            name: {
                "compute_dtype": llm.info.compute_dtype,
                "kernel_set": llm.info.kernel_set,
                "kernel_paths": dict(llm.info.kernel_paths),
                "linear_weight_bytes": llm.info.linear_weight_bytes,
            }
            for name, llm in llms.items()
        },
        "environment": capture_environment().model_dump(),
    }


def described(document: dict[str, Any]) -> str:
    lines = [f"{document['model']}: likeliest token as transformers finds it in float32"]
    for name, found in document["arms"].items():
        lines.append(
            f"  {name}: {found['top1_agreement']:.2%} ({found['agreeing']} of {found['positions']} positions), "
            f"mean KL {found['mean_kl_nats']:.5f} nats"
        )
    for name, paired in document[f"against {BASELINE}"].items():
        low, high = paired["interval_95_points"]
        lines.append(
            f"  {name} less {BASELINE}: {paired['difference_points']:+.2f} points ({low:+.2f} to {high:+.2f}); "
            f"only the first agrees at {paired['only_candidate_agrees']} positions, only the second at "
            f"{paired['only_baseline_agrees']}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--scheme", action="append", help="once for each; fp16 where none is given")
    parser.add_argument("--kernel-set", default="cpu", choices=get_args(KernelSetName))
    parser.add_argument("--tokens", type=int, default=512, help="length of a sequence")
    parser.add_argument("--positions", type=int, default=None, help="stop after so many; all texts by default")
    parser.add_argument("--chunk-tokens", type=int, default=None, help="rows that quantgate computes together")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--output", type=output_file)
    arguments = parser.parse_args()
    document = measure(arguments)
    print(described(document))
    if arguments.output:
        arguments.output.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
