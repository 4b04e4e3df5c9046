"""A whole suite small enough for a test: a tiny random model, sixteen requests, a policy that asks for little."""

from __future__ import annotations

import json
from pathlib import Path

from tests.engine.tiny_model import save_tiny_model
from tests.engine.tiny_tokenizer import save_tiny_tokenizer

POLICY = """\
schema: quantgate.policy/1
name: tiny
rules:
  - {id: failures, metric: failure_rate, margin: 40pp}
gain: null
aa: {required: false}
"""


def write_tiny_suite(folder: Path, *, requests: int = 16, candidate_scheme: str = "int8-w8a16") -> Path:
    """Writes model, trace, policy and suite into `folder`; returns the suite's path."""
    model = folder / "model"
    save_tiny_model(model)
    save_tiny_tokenizer(model, vocab_size=257)
    (folder / "traffic.jsonl").write_text("".join(trace_line(index) + "\n" for index in range(requests)))
    (folder / "policy.yaml").write_text(POLICY)
    suite = folder / "suite.yaml"
    suite.write_text(
        f"""\
schema: quantgate.suite/1
name: tiny
model: {model}
seed: 7
arms:
  - {{scheme: fp32, role: baseline}}
  - {{scheme: {candidate_scheme}, id: candidate}}
aa: true
engine: {{max_active_requests: 4, max_step_tokens: 32, max_context_tokens: 128}}
workload: {{trace: traffic.jsonl, blocks: 2, lag_limit_ms: 5000}}
quality:
  distribution: {{sequences: 4}}
policy: policy.yaml
"""
    )
    return suite


def trace_line(index: int) -> str:
    words = " ".join(f"w{5 + (7 * index + 3 * word) % 250}" for word in range(4 + index % 5))
    row = {
        "id": f"r{index:02d}",
        "offset": 0.01 * index,
        "messages": [{"role": "user", "content": words}],
        "max_tokens": 3 + index % 4,
        "class": "interactive",
    }
    return json.dumps(row)
