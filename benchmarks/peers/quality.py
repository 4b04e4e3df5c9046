"""How near quantgate's schemes come to fp32 on the comparison's own requests; compare.py runs it as a process.

fp32 on the kernels that define what is right gives the reference: its greedy answers, which the answers of all engines
are compared with, and its distributions at every answer token. A scheme's divergence from them is *usual* where it is
what the same scheme gives on those kernels: what the fast ones add must be rounding.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

# The modules beside this script are read as parts of `benchmarks`, by the tests too.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from benchmarks.peers.engines.quantgate import MODEL, STEP_TOKENS
from benchmarks.peers.workload import ROOM_TOKENS, Workload, read_workload

from quantgate.quality.whole_divergence import compare_positions
from quantgate_engine import LLM, SamplingParams
from quantgate_engine.errors import QuantgateError
from quantgate_engine.executor.compute_thread import on_compute_thread
from quantgate_kernels.kernel_set_names import AUTO

REFERENCE_KERNELS = "reference"

LARGEST_SHARE_OF_USUAL = 1.25
"""16-bit rounding alone, done in another order, moves a mean over two thousand positions by about a tenth."""

Tokens = list[int]


@dataclass(frozen=True, slots=True)
class Divergence:
    """Means over the answer tokens, in nats, against fp32.

    kl: of whole distributions, teacher-forced. decode_delta: absolute difference of the token's log-probability when
    the engine decodes the answer under continuous batching, as in the comparison.
    """

    kl: float
    decode_delta: float
    top1_agreement: float
    positions: int

    def is_usual(self, usual: Divergence) -> bool:
        return (
            self.kl <= LARGEST_SHARE_OF_USUAL * usual.kl
            and self.decode_delta <= LARGEST_SHARE_OF_USUAL * usual.decode_delta
        )


class Reference:
    """fp32's greedy answers to all requests of the workload (the lone one first), and its view of each token."""

    def __init__(self, workload: Workload, threads: int) -> None:
        self._workload, self._threads = workload, threads
        self._prompts = [workload.single_prompt, *workload.batch_prompts]
        llm = self._load("fp32", REFERENCE_KERNELS)
        lengths = [workload.single_tokens, *[workload.batch_tokens] * len(workload.batch_prompts)]
        params = [SamplingParams(max_tokens=length, ignore_eos=True) for length in lengths]
        self.answers = [list(output.token_ids) for output in llm.generate(self._prompts, params)]
        self._logits = self._teacher_forced(llm)
        self._log_probs = self._decoded(llm)

    def divergence(self, scheme: str, kernel_set: str) -> Divergence:
        llm = self._load(scheme, kernel_set)
        triples = zip(self._logits, self._teacher_forced(llm), self.answers, strict=True)
        compared = [on_compute_thread(partial(compare_positions, *triple)) for triple in triples]
        return Divergence(
            kl=float(np.concatenate([each.kl for each in compared]).mean()),
            decode_delta=float(np.abs(self._log_probs - self._decoded(llm)).mean()),
            top1_agreement=float(np.concatenate([each.same_top1 for each in compared]).mean()),
            positions=len(self._log_probs),
        )

    def _load(self, scheme: str, kernel_set: str) -> LLM:
        return LLM(
            MODEL,
            scheme,
            kernel_set=kernel_set,
            threads=self._threads,
            max_active_requests=self._workload.active,
            max_step_tokens=STEP_TOKENS,
            max_context_tokens=ROOM_TOKENS,
        )

    def _teacher_forced(self, llm: LLM) -> list[Any]:
        return [
            llm.continuation_logits(prompt, [answer])[0]
            for prompt, answer in zip(self._prompts, self.answers, strict=True)
        ]

    def _decoded(self, llm: LLM) -> np.ndarray[Any, Any]:
        params = [
            SamplingParams(max_tokens=len(answer), forced_token_ids=tuple(answer), logprobs=0)
            for answer in self.answers
        ]
        outputs = llm.generate(self._prompts, params)
        return np.array([token.logprob for output in outputs for token in output.logprobs or ()], dtype=np.float64)


def measure(schemes: list[str], workload: Workload, threads: int) -> dict[str, Any]:
    reference = Reference(workload, threads)
    found: dict[str, Any] = {}
    for scheme in schemes:
        try:
            own, usual = reference.divergence(scheme, AUTO), reference.divergence(scheme, REFERENCE_KERNELS)
        except QuantgateError as error:
            found[scheme] = {"error": str(error)}
            continue
        found[scheme] = {"found": asdict(own), "usual": asdict(usual), "kept": own.is_usual(usual)}
    return {
        "single_ids": reference.answers[0],
        "batch_ids": reference.answers[1:],
        "largest_share_of_usual": LARGEST_SHARE_OF_USUAL,
        "schemes": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemes", nargs="+", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--in-small", action="store_true")
    arguments = parser.parse_args()
    workload = read_workload()
    if arguments.in_small:
        workload = workload.in_small()
    print(json.dumps(measure(arguments.schemes, workload, arguments.threads)))


if __name__ == "__main__":
    main()
