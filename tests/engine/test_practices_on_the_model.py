"""The benchmark of practices on the real engine: that it runs, not how fast."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.practice_executors import torch_machine
from benchmarks.practice_figures import ENGINE, figures_of
from benchmarks.practice_pools import pools_by_class
from benchmarks.practice_recorder import complete
from benchmarks.practice_setups import engine_of
from benchmarks.practice_traffic import CONTEXT_TOKENS, Traffic, draw_plan

from quantgate_engine import LLM
from quantgate_engine.config import EngineConfig
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings

pytestmark = pytest.mark.model

MODEL = "smollm2-135m-instruct"
FEW = Traffic(requests=8, requests_per_s=100.0, document_share=0, answer_tokens=6, longest_answer=8)


def test_one_engine_and_pools_replay_the_same_requests() -> None:
    machine = torch_machine(MODEL, "fp16", threads=1)
    for name, setup in pools_by_class(FEW).rows.items():
        figures = figures_of(machine.replay(setup))
        assert figures["all"]["requests"] == 8, name
        assert figures[ENGINE]["preemptions"] == 0, name
    assert machine.description["measured_on"] == f"{MODEL}, fp16, in real time"
    assert not machine.several_devices


def test_every_step_and_swap_is_recorded() -> None:
    llm = LLM(MODEL, "fp16", EngineConfig(threads=1, num_kv_blocks=1))
    requests = draw_plan(replace(FEW, answer_tokens=40, longest_answer=48)).requests
    engine = replace(
        engine_of(CONTEXT_TOKENS, pool_tokens=CONTEXT_TOKENS // 2),
        max_context_tokens=CONTEXT_TOKENS // 2,
        admission=AdmissionSettings(estimator="optimistic"),
        preemption=PreemptionSettings(mode="swap", host_blocks=64),
    )
    times = complete(llm, engine, requests)
    assert len(times.shapes) == len(times.step_ns)
    assert min(times.step_ns) > 0
    assert times.swapped_blocks > 0
    assert times.swap_ns > 0
    # Swapped out and in, nothing is computed twice; the last token of each is never fed back.
    assert sum(shape.prefill_tokens + shape.decode_requests for shape in times.shapes) == sum(
        request.prompt_tokens + request.output_tokens - 1 for request in requests
    )
