"""llama.cpp through llama-cpp-python, driven by a loop over `llama_decode` that batches continuously.

Python's part of a token is a few microseconds; llama.cpp's own server, measured beside it, was within 12 %.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers.adapter import BatchAnswer, Engine, SingleAnswer
from benchmarks.peers.description import EngineDescription, Precision, Step, Widths, pip_install
from benchmarks.peers.workload import ROOM_TOKENS, Workload

STEP_TOKENS = 2048
COMPUTE_BATCH_TOKENS = 512
"""llama.cpp splits a step into parts of so many tokens; its default."""

CELLS_TOO = True
"""What `llama_memory_clear` is told: forget the contents of the cache, not only whose they are."""


def gguf(kind: str) -> Step:
    target = f"models/llama-{kind}.gguf"
    return Step(
        f"write {kind}", ("{python}", "{scripts}/gguf_file.py", kind, "{gguf}", f"{{folder}}/{target}"), (target,)
    )


DESCRIPTION = EngineDescription(
    name="llama-cpp-python",
    environment="llama-cpp-python",
    distributions=("llama-cpp-python",),
    precisions=(
        Precision("bf16", 16, Widths("bfloat16", "float32, bfloat16 in products", "bfloat16", "float16")),
        Precision(
            "q8_0", 8, Widths("int8 groups of 32", "int8 groups of 32 in products", "int8 groups of 32", "float16")
        ),
        Precision(
            "q4_0", 4, Widths("int4 groups of 32", "int8 groups of 32 in products", "int8 groups of 32", "float16")
        ),
    ),
    steps=(
        pip_install(
            "--no-binary",
            "llama-cpp-python",
            "llama-cpp-python==0.3.36",
            # This machine's own instruction set, which a wheel for all machines leaves unused.
            variables={"CMAKE_ARGS": "-DGGML_NATIVE=ON"},
        ),
        gguf("bf16"),
        gguf("q8_0"),
        gguf("q4_0"),
    ),
)


@dataclass
class Sequence:
    """A request in progress; `slot` is its sequence number in llama.cpp's cache."""

    request: int
    slot: int
    position: int
    """Of the token that it computes next."""

    ids: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


class LlamaCpp:
    def __init__(self, file: Path, threads: int, active: int) -> None:
        import llama_cpp
        import numpy

        self._llama, self._numpy = llama_cpp, numpy
        self._active = active
        llama_cpp.llama_backend_init()
        self._model = llama_cpp.llama_model_load_from_file(str(file).encode(), llama_cpp.llama_model_default_params())
        if not self._model:
            raise RuntimeError(f"llama.cpp cannot load {file}")
        self._vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))
        self._alone = self._context(threads, sequences=1)
        self._together = self._context(threads, sequences=active)
        self._step = llama_cpp.llama_batch_init(STEP_TOKENS, 0, 1)

    def single(self, ids: list[int], tokens: int) -> SingleAnswer:
        [sequence], total_s = self._run(self._alone, [ids], tokens, 1)
        return SingleAnswer(sequence.ids, sequence.times[0], total_s, sequence.times)

    def batch(self, prompts: list[list[int]], tokens: int) -> BatchAnswer:
        sequences, total_s = self._run(self._together, prompts, tokens, self._active)
        return BatchAnswer([sequence.ids for sequence in sequences], total_s)

    def _context(self, threads: int, sequences: int) -> Any:
        params = self._llama.llama_context_default_params()
        params.n_ctx, params.n_seq_max = sequences * ROOM_TOKENS, sequences
        params.n_batch, params.n_ubatch = STEP_TOKENS, COMPUTE_BATCH_TOKENS
        params.n_threads = params.n_threads_batch = threads
        # One pool for all sequences: with pools of their own, each is computed by itself.
        params.kv_unified = True
        context = self._llama.llama_init_from_model(self._model, params)
        if not context:
            raise RuntimeError(f"llama.cpp cannot make a context for {sequences} sequences")
        return context

    def _run(self, context: Any, prompts: list[list[int]], tokens: int, active: int) -> tuple[list[Sequence], float]:
        """Each step decodes one token of every running sequence and takes in the prompts that still fit."""
        memory = self._llama.llama_get_memory(context)
        self._llama.llama_memory_clear(memory, CELLS_TOO)
        waiting = list(range(len(prompts)))
        slots = list(range(active))
        running: list[Sequence] = []
        finished: list[Sequence] = []
        started = time.perf_counter()
        while waiting or running:
            self._step.n_tokens = 0
            rows = [self._add(sequence.ids[-1:], sequence, sequence.position) for sequence in running]
            while waiting and slots and self._step.n_tokens + len(prompts[waiting[0]]) <= STEP_TOKENS:
                request = waiting.pop(0)
                sequence = Sequence(request, slots.pop(), len(prompts[request]) - 1)
                rows.append(self._add(prompts[request], sequence, 0))
                running.append(sequence)
            code = self._llama.llama_decode(context, self._step)
            if code != 0:
                raise RuntimeError(f"llama_decode gave {code}")
            for row, sequence in zip(rows, running, strict=True):
                logits = self._llama.llama_get_logits_ith(context, row)
                sequence.ids.append(int(self._numpy.ctypeslib.as_array(logits, (self._vocabulary,)).argmax()))
                sequence.position += 1
                sequence.times.append(time.perf_counter() - started)
            for sequence in [each for each in running if len(each.ids) == tokens]:
                running.remove(sequence)
                finished.append(sequence)
                slots.append(sequence.slot)
                self._llama.llama_memory_seq_rm(memory, sequence.slot, -1, -1)
        return sorted(finished, key=lambda each: each.request), time.perf_counter() - started

    def _add(self, ids: list[int], sequence: Sequence, position: int) -> int:
        """Adds tokens to the step; returns the row of the last one, whose logits are wanted."""
        step = self._step
        for offset, token in enumerate(ids):
            row = step.n_tokens
            step.token[row], step.pos[row] = token, position + offset
            step.n_seq_id[row], step.seq_id[row][0] = 1, sequence.slot
            step.logits[row] = offset == len(ids) - 1
            step.n_tokens += 1
        return int(step.n_tokens - 1)


def load(precision: str, threads: int, workload: Workload, models: Path) -> Engine:
    return LlamaCpp(models / f"llama-{DESCRIPTION.precision(precision).name}.gguf", threads, workload.active)
