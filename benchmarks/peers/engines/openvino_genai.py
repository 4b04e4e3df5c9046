"""OpenVINO GenAI's continuous batching pipeline: paged KV cache, oneDNN products, weights compressed by NNCF."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.peers.adapter import BatchAnswer, Engine, SingleAnswer
from benchmarks.peers.description import EngineDescription, Precision, Step, Widths, pip_install
from benchmarks.peers.workload import Workload

STEP_TOKENS = 2048
CACHE_GIB = 1


def export(weights: str, *options: str) -> Step:
    """optimum-cli reads the Hugging Face folder and writes OpenVINO's form of model and tokenizer."""
    command = ("{python}", "-m", "optimum.commands.optimum_cli", "export", "openvino", "--model", "{hf}")
    target = f"models/openvino-{weights}"
    task = ("--task", "text-generation-with-past", "--weight-format", weights)
    return Step(f"export {weights}", (*command, *task, *options, f"{{folder}}/{target}"), produces=(target,))


DESCRIPTION = EngineDescription(
    name="openvino-genai",
    environment="openvino-genai",
    distributions=("openvino", "openvino-genai", "nncf", "optimum-intel", "torch", "transformers"),
    precisions=(
        Precision("fp16", 16, Widths("float16", "bfloat16", "float16", "bfloat16")),
        Precision(
            "int8", 8, Widths("int8 per channel, asymmetric", "bfloat16, int8 groups in products", "int8", "uint8")
        ),
        Precision(
            "int4", 4, Widths("int4 groups of 64, symmetric", "bfloat16, int8 groups in products", "int8", "uint8")
        ),
    ),
    steps=(
        pip_install("openvino-genai==2026.4.1.0", "optimum-intel==2.2.0", "nncf==3.4.0", "torch==2.13.0"),
        # optimum-intel brings torchvision, which cannot be imported beside a torch from another index.
        Step("remove torchvision", ("{python}", "-m", "pip", "uninstall", "--yes", "torchvision")),
        export("fp16"),
        export("int8"),
        export("int4", "--sym", "--group-size", "64", "--ratio", "1.0"),
    ),
)


class OpenVino:
    def __init__(self, model: Path, properties: dict[str, object], active: int) -> None:
        import numpy
        import openvino
        import openvino_genai

        self._numpy, self._openvino, self._genai = numpy, openvino, openvino_genai
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.max_num_seqs = active
        scheduler.max_num_batched_tokens = STEP_TOKENS
        scheduler.cache_size = CACHE_GIB
        scheduler.enable_prefix_caching = False
        self._pipeline = openvino_genai.ContinuousBatchingPipeline(str(model), scheduler, "CPU", properties)
        self._requests = 0

    def single(self, ids: list[int], tokens: int) -> SingleAnswer:
        [answer], [times], total_s = self._run([ids], tokens)
        return SingleAnswer(answer, times[0], total_s, times)

    def batch(self, prompts: list[list[int]], tokens: int) -> BatchAnswer:
        answers, _, total_s = self._run(prompts, tokens)
        return BatchAnswer(answers, total_s)

    def _run(self, prompts: list[list[int]], tokens: int) -> tuple[list[list[int]], list[list[float]], float]:
        config = self._genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = tokens, True, False
        answers: list[list[int]] = [[] for _ in prompts]
        times: list[list[float]] = [[] for _ in prompts]
        started = time.perf_counter()
        handles = [self._add(prompt, config) for prompt in prompts]
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
            for handle, answer, seen in zip(handles, answers, times, strict=True):
                while handle.can_read():
                    for output in handle.read().values():
                        answer += output.generated_ids
                        seen += [time.perf_counter() - started] * len(output.generated_ids)
        return answers, times, time.perf_counter() - started

    def _add(self, prompt: list[int], config: Any) -> Any:
        self._requests += 1
        ids = self._openvino.Tensor(self._numpy.array([prompt], dtype=self._numpy.int64))
        return self._pipeline.add_request(self._requests, ids, config)


def load(precision: str, threads: int, workload: Workload, models: Path) -> Engine:
    properties: dict[str, object] = {"INFERENCE_NUM_THREADS": threads}
    if DESCRIPTION.precision(precision).bits == 16:
        properties["INFERENCE_PRECISION_HINT"] = "bf16"
    return OpenVino(models / f"openvino-{precision}", properties, workload.active)
