"""Fits the simulated executor's step costs to measured steps of the real engine.

    python benchmarks/practice_costs.py --threads 2 --output benchmarks/step_costs.json

Few and many requests of the practices' traffic, and long prompts in chunks and in one piece, are completed beside each
other, and every step's time is taken. The costs are the non-negative least squares solution over the steps' shapes
(scipy's `nnls`), each step weighted by one over its time: a decode step counts as much as a long prefill. `r_squared`
is of the times themselves, `median_error` the median of |predicted - measured| / measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

# The modules beside this script are read as parts of `benchmarks`, by the tests too.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.output_file import output_file
from benchmarks.practice_cost_fit import StepTimes, fit_costs
from benchmarks.practice_recorder import complete
from benchmarks.practice_setups import engine_of
from benchmarks.practice_traffic import CONTEXT_TOKENS, LONG_OUTPUT_TOKENS, Traffic, draw_plan

from quantgate.environment import capture_environment
from quantgate.workload.plan import PlannedRequest
from quantgate_engine import LLM
from quantgate_engine.config import EngineConfig
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.preemption.settings import PreemptionSettings

ACTIVE_AND_REQUESTS = ((1, 8), (4, 24), (16, 80), (32, 128))
LONG_PROMPTS = (1_000, 2_000, 4_000)


def loads() -> Iterator[tuple[EngineConfig, tuple[PlannedRequest, ...]]]:
    """Engines, and the requests that each is given at once; the first warms up."""
    requests = draw_plan(Traffic()).requests
    for active, count in (ACTIVE_AND_REQUESTS[0], *ACTIVE_AND_REQUESTS):
        yield engine_of(CONTEXT_TOKENS, active=active), requests[-count:]
    for settings in (BatchingSettings(), BatchingSettings(chunked_prefill=False)):
        for tokens in LONG_PROMPTS:
            long = draw_plan(Traffic(requests=8, long_prompts=1, long_prompt_tokens=tokens)).requests
            yield replace(engine_of(tokens + LONG_OUTPUT_TOKENS, active=9), batching=settings), long


def swapping_load() -> tuple[EngineConfig, tuple[PlannedRequest, ...]]:
    """An engine that runs out of blocks again and again, and moves them to the host."""
    engine = replace(
        engine_of(CONTEXT_TOKENS, active=32, pool_tokens=2 * CONTEXT_TOKENS),
        admission=AdmissionSettings(estimator="optimistic"),
        preemption=PreemptionSettings(mode="swap", host_blocks=512),
    )
    return engine, draw_plan(Traffic(document_share=0)).requests[:80]


def measure(llm: LLM) -> StepTimes:
    times = StepTimes()
    for number, (engine, requests) in enumerate(loads()):
        recorded = complete(llm, engine, requests)
        if number > 0:
            times.shapes += recorded.shapes
            times.step_ns += recorded.step_ns
    swaps = complete(llm, *swapping_load())
    times.swapped_blocks, times.swap_ns = swaps.swapped_blocks, swaps.swap_ns
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--scheme", default="fp16")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--output", type=output_file)
    options = parser.parse_args()
    llm = LLM(options.model, options.scheme, EngineConfig(threads=options.threads, num_kv_blocks=1))
    fit = fit_costs(measure(llm))
    document = {
        "fitted_to": f"{llm.info.name}, {llm.info.scheme} (R^2 {fit.r_squared:.3f})",
        "compute_dtype": llm.info.compute_dtype,
        "kernel_paths": dict(llm.info.kernel_paths),
        "environment": capture_environment().model_dump(),
        **asdict(fit),
    }
    text = json.dumps(document, indent=2)
    print(text)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
