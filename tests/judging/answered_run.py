"""Small stored runs whose answers carry a hidden quality, and a scripted judge that knows it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from tests.report.stored_run import build_manifest

from quantgate.judging.judge_client import JudgeClient
from quantgate.judging.judge_run import JudgingOrder, PreparedJudging, judge_pairs, prepare
from quantgate.judging.judging_session import SessionOutcome
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.store.run_folder import LoadedRun, RunFolder, load_run
from quantgate.store.schemas import REQUESTS

BASELINE, AA, CANDIDATE = "fp16", "fp16-aa", "int4-g64"
ROLES = {BASELINE: "baseline", AA: "aa", CANDIDATE: "candidate"}
Qualities = Callable[[str, int], int]
"""(arm, index of the request) -> how good its answer is."""


def answer(request: str, quality: int, salt: str = "") -> str:
    """Two answers with equal quality and salt are identical."""
    return f"An answer to {request}{salt}, of worth {quality:03d}."


def request_row(arm_id: str, index: int, output: str | None, **changes: Any) -> dict[str, Any]:
    """A finished request; every column holds something that its type allows."""
    blank: dict[str, Any] = {
        column.name: None if column.nullable else [] if pa.types.is_list(column.type) else ""
        if pa.types.is_string(column.type) else 0
        for column in REQUESTS
    }  # fmt: skip
    name = f"r{index:03d}"
    return blank | {
        "arm_id": arm_id, "request_id": name, "slo_class": "batch" if index % 4 == 0 else "interactive", "turn": 1,
        "tags": ["chat"] if index % 2 else ["code"], "status": "finished", "prompt_text": f"Question {name}?",
        "output_text": output,
    } | changes  # fmt: skip


def run_of(rows: list[dict[str, Any]], **changes: Any) -> LoadedRun:
    manifest = build_manifest(1)
    arms = [arm for arm in manifest.arms if arm.arm_id in ROLES]
    blank = {name: pa.Table.from_pylist([], schema=schema) for name, schema in _other_tables().items()}
    return LoadedRun(
        manifest=manifest.model_copy(update={"arms": arms, "policy": None} | changes),
        requests=pa.Table.from_pylist(rows, schema=REQUESTS),
        **blank,
    )


def _other_tables() -> dict[str, pa.Schema]:
    from quantgate.store.schemas import QUALITY, STEPS

    return {"steps": STEPS, "quality": QUALITY}


def answered_run(requests: int, quality: Qualities, *, identical_aa: bool = False) -> LoadedRun:
    """Every arm answers every request; answers of different arms differ in their text, whatever their quality."""
    rows = []
    for arm_id in ROLES:
        for index in range(requests):
            salt = "" if arm_id == BASELINE or (identical_aa and arm_id == AA) else f" (version {len(arm_id)})"
            rows.append(request_row(arm_id, index, answer(f"r{index:03d}", quality(arm_id, index), salt)))
    return run_of(rows)


def preferring_baseline(share: float, requests: int, seed: int) -> Qualities:
    """The candidate is the worse one for `share` of the requests, by a draw for each; A/A differs by a fair draw."""
    random = Random(seed)
    worth = {
        (arm_id, index): 500 + (-1 if random.random() < lost else 1) * random.randint(1, 400)
        for arm_id, lost in ((AA, 0.5), (CANDIDATE, share))
        for index in range(requests)
    }
    return lambda arm_id, index: worth.get((arm_id, index), 500)


def store(run: LoadedRun, folder: Path) -> RunFolder:
    written = RunFolder(folder, run.manifest.run_id)
    written.write_manifest(run.manifest)
    for name in ("requests", "steps", "quality"):
        written.write_table(name, getattr(run, name))
    return written


_MATERIAL = re.compile(r"\[(\w+) begin (request|answer 1|answer 2)\]\n(.*?)\n\[\1 end \2\]", re.DOTALL)
_WORTH = re.compile(r"of worth (\d{3})")


@dataclass
class ScriptedJudge:
    """An endpoint in memory: prefers the better answer, but with chance `position_bias` the one shown first.

    What it does with a question depends on its seed and the question alone, never on the order of calls. `reply`
    replaces its reply's text, `fault` may raise, `usage` says what a call used (None: not told).
    """

    position_bias: float = 0.0
    seed: int = 0
    reply: Callable[[str], str] | None = None
    fault: Callable[[int], BaseException | None] = lambda call: None
    usage: Callable[[dict[str, Any], Random], dict[str, int] | None] = lambda body, random: {
        "prompt_tokens": 40, "completion_tokens": 10
    }  # fmt: skip
    latency_s: float = 0.0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    most_at_once: int = 0
    _at_once: int = 0

    async def post_json(self, path: str, body: Any) -> Any:
        self.paths.append(path)
        self.bodies.append(body)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        question = body["messages"][-1]["content"]
        random = Random(f"{self.seed} {question}")
        try:
            error = self.fault(len(self.bodies))
            await asyncio.sleep(self.latency_s * random.random())
            if error is not None:
                raise error
        finally:
            self._at_once -= 1
        text = self.reply(question) if self.reply else json.dumps({"better": self._choice(question, random)})
        document: dict[str, Any] = {"choices": [{"message": {"role": "assistant", "content": text}}]}
        used = self.usage(body, random)
        return document if used is None else document | {"usage": used}

    def _choice(self, question: str, random: Random) -> str:
        shown = {name: text for _, name, text in _MATERIAL.findall(question)}
        worth = [int(_WORTH.findall(shown[name])[-1]) for name in ("answer 1", "answer 2")]
        if random.random() < self.position_bias:
            return "1"
        return "tie" if worth[0] == worth[1] else "1" if worth[0] > worth[1] else "2"


def order_of(**changes: Any) -> JudgingOrder:
    settings: dict[str, Any] = {
        "model": "judge-1", "items": 1000, "budget_requests": 10_000, "budget_tokens": 100_000_000, "max_tokens": 64,
        "seed": 1,
    }  # fmt: skip
    return JudgingOrder(**settings | changes)


def judge_all(
    run: LoadedRun, folder: Path, judge: ScriptedJudge, order: JudgingOrder | None = None
) -> tuple[PreparedJudging, SessionOutcome, LoadedRun]:
    """Judges a run that is stored in `folder`; returns it as it is read back."""
    order = order or order_of()
    prepared = prepare(run, order)
    client = JudgeClient(judge, order.model, order.max_tokens, {})
    written = RunFolder(folder, run.manifest.run_id)
    outcome = run_in_virtual_time(lambda clock: judge_pairs(prepared, client, written, lambda done: None))
    return prepared, outcome, load_run(folder)
