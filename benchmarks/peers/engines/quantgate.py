"""quantgate's own engine, through its public front."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers.adapter import BatchAnswer, Engine, SingleAnswer
from benchmarks.peers.description import EngineDescription, Precision, Widths
from benchmarks.peers.workload import ROOM_TOKENS, Workload

if TYPE_CHECKING:
    from quantgate_engine import SamplingParams

MODEL = "smollm2-135m-instruct"
STEP_TOKENS = 2048
"""As the peers have it."""

WEIGHTS = {
    "fp16": "16 bits",
    "bf16": "16 bits",
    "int8-w8a16": "int8 per channel",
    "int8-w8a8": "int8 per channel",
    "int4-g32": "int4 groups of 32, symmetric",
    "int4-g64": "int4 groups of 64, symmetric",
    "int4-g128": "int4 groups of 128, symmetric",
}
BITS = {"fp": 16, "bf": 16, "int8": 8, "int4": 4}


def bits_of(scheme: str) -> int:
    return next(bits for prefix, bits in BITS.items() if scheme.startswith(prefix))


DESCRIPTION = EngineDescription(
    name="quantgate",
    environment=None,
    distributions=("quantgate", "torch"),
    precisions=tuple(Precision(scheme, bits_of(scheme)) for scheme in WEIGHTS),
)


class Quantgate:
    def __init__(self, scheme: str, threads: int, active: int) -> None:
        from quantgate_engine import LLM, SamplingParams

        self._params = SamplingParams
        self._llm = LLM(
            MODEL,
            scheme,
            threads=threads,
            max_active_requests=active,
            max_step_tokens=STEP_TOKENS,
            max_context_tokens=ROOM_TOKENS,
        )

    @property
    def widths(self) -> Widths:
        info = self._llm.info
        return Widths(WEIGHTS[info.scheme], info.compute_dtype, info.head_dtype, info.kv_dtype)

    def single(self, ids: list[int], tokens: int) -> SingleAnswer:
        # The clock that the engine stamps its tokens with.
        started_ns = time.monotonic_ns()
        [output] = self._llm.generate([ids], self._greedy(tokens))
        total_ns = time.monotonic_ns() - started_ns
        first_token_ns = output.timing.first_token_ns
        if first_token_ns is None:
            raise RuntimeError("the engine did not say when the first token was drawn")
        return SingleAnswer(list(output.token_ids), (first_token_ns - started_ns) / 1e9, total_ns / 1e9)

    def batch(self, prompts: list[list[int]], tokens: int) -> BatchAnswer:
        started_ns = time.monotonic_ns()
        outputs = self._llm.generate(prompts, self._greedy(tokens))
        return BatchAnswer([list(output.token_ids) for output in outputs], (time.monotonic_ns() - started_ns) / 1e9)

    def _greedy(self, tokens: int) -> SamplingParams:
        return self._params(max_tokens=tokens, ignore_eos=True)


def load(precision: str, threads: int, workload: Workload, _models: Path) -> Engine:
    return Quantgate(DESCRIPTION.precision(precision).name, threads, workload.active)
