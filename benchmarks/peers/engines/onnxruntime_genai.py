"""ONNX Runtime GenAI. One request goes through its `Engine`, a batch through right-padded calls of its `Generator`.

Each is the faster way on a CPU for what it is used for. Padding on the left, as other libraries do it, runs as fast
and answers wrongly.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.adapter import BatchAnswer, Engine, SingleAnswer
from benchmarks.peers.description import EngineDescription, Precision, Step, Widths, pip_install
from benchmarks.peers.workload import Workload

PADDING_ID = 2
EVENTS_AT_ONCE = 64


def build(precision: str, *extra_options: str) -> Step:
    target = f"models/onnxruntime-{precision}"
    command = ("{python}", "-m", "onnxruntime_genai.models.builder", "-e", "cpu", "-p", precision, "-i", "{hf}")
    options = ("--extra_options", *extra_options) if extra_options else ()
    places = ("-o", f"{{folder}}/{target}", "-c", "{folder}/onnxruntime-builder-cache")
    return Step(f"build {precision}", (*command, *places, *options), produces=(target,))


DESCRIPTION = EngineDescription(
    name="onnxruntime-genai",
    environment="onnxruntime-genai",
    distributions=("onnxruntime-genai", "onnxruntime", "onnx", "torch", "transformers"),
    precisions=(
        # It has no 16-bit path on a CPU: what a user of 16-bit weights runs there is this.
        Precision("fp32", 16, Widths("float32", "float32", "float32", "float32")),
        Precision("int8", 8, Widths("int8 groups of 32", "int8 groups in products", "int8 groups of 32", "float32")),
        Precision("int4", 4, Widths("int4 groups of 32", "int8 groups in products", "int4 groups of 32", "float32")),
    ),
    steps=(
        pip_install(
            "onnxruntime-genai==0.18.0",
            "onnxruntime==1.32.0",
            "onnx",
            "onnx-ir",
            "torch==2.13.0",
            "transformers==5.24.0",
        ),
        build("fp32"),
        build("int8", "block_size=32", "accuracy_level=4"),
        build("int4", "block_size=32", "accuracy_level=4"),
    ),
)


class OnnxRuntime:
    def __init__(self, model: Path, threads: int, active: int) -> None:
        import numpy
        import onnxruntime_genai

        self._numpy, self._genai = numpy, onnxruntime_genai
        self._active = active
        config = onnxruntime_genai.Config(str(model))
        session = {"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}
        config.overlay(json.dumps(session))
        config.overlay(json.dumps({"engine": {"static_batching": {"max_batch_size": active}}}))
        self._model = onnxruntime_genai.Model(config)
        self._engine = onnxruntime_genai.Engine(self._model)

    def single(self, ids: list[int], tokens: int) -> SingleAnswer:
        answer: list[int] = []
        times: list[float] = []
        events = self._engine.create_event_buffer(EVENTS_AT_ONCE)
        started = time.perf_counter()
        request = self._engine.create_request()
        options = self._genai.TurnOptions(request)
        options.set_max_generated_tokens(tokens)
        options.set_min_generated_tokens(tokens)
        options.set_do_sample(False)
        request.begin_turn(self._ids(ids), options)
        while self._engine.has_pending_requests():
            for event in self._engine.run(events):
                if event.flags & self._genai.EngineEventFlags.TOKEN:
                    answer.append(int(event.token))
                    times.append(time.perf_counter() - started)
        total_s = time.perf_counter() - started
        request.close()
        return SingleAnswer(answer, times[0], total_s, times)

    def batch(self, prompts: list[list[int]], tokens: int) -> BatchAnswer:
        """As many requests as may be active form a batch; the next one starts when all of it have ended."""
        answers: list[list[int]] = []
        started = time.perf_counter()
        for first in range(0, len(prompts), self._active):
            answers += self._generate(prompts[first : first + self._active], tokens)
        return BatchAnswer(answers, time.perf_counter() - started)

    def _generate(self, prompts: list[list[int]], tokens: int) -> list[list[int]]:
        longest = max(map(len, prompts))
        padded = self._ids([[*prompt, *[PADDING_ID] * (longest - len(prompt))] for prompt in prompts])
        params = self._genai.GeneratorParams(self._model)
        length = longest + tokens
        params.set_search_options(max_length=length, min_length=length, do_sample=False, batch_size=len(prompts))
        generator = self._genai.Generator(self._model, params)
        generator.append_tokens(padded)
        while not generator.is_done():
            generator.generate_next_token()
        return [generator.get_sequence(index)[longest:length].tolist() for index in range(len(prompts))]

    def _ids(self, ids: Any) -> Any:
        return self._numpy.array(ids, dtype=self._numpy.int32)


def load(precision: str, threads: int, workload: Workload, models: Path) -> Engine:
    return OnnxRuntime(models / f"onnxruntime-{DESCRIPTION.precision(precision).name}", threads, workload.active)
