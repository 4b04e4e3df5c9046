"""Which answers of a replay are compared token by token."""

from __future__ import annotations

import pyarrow as pa

from quantgate.run.quality_phase import answer_sequences
from quantgate.workload.plan import PlannedRequest, ReplayPlan

PLAN = ReplayPlan(
    (
        PlannedRequest("a", 0, (1, 2), 2, session_id="s"),
        PlannedRequest("b", 1, (), 2),
        PlannedRequest("c", 2, (3,), 2),
    ),
    source="x",
    source_sha256="x",
)


def row(
    request_id: str, arm_id: str = "fp16", passed: int = 0, status: str = "finished", ids: tuple[int, ...] = (7,)
) -> dict[str, object]:
    return {
        "arm_id": arm_id, "pass_index": passed, "request_id": request_id, "status": status,
        "output_token_ids": list(ids), "output_text": "so it is",
    }  # fmt: skip


def test_finished_answers_of_the_baselines_first_pass_whose_tokens_are_known() -> None:
    rows = [
        row("a"), row("a", passed=1, ids=(8,)), row("a", arm_id="int4", ids=(9,)), row("b"), row("c", status="failed"),
    ]  # fmt: skip
    [sequence] = answer_sequences(PLAN, pa.Table.from_pylist(rows), "fp16")
    assert (sequence.request_id, sequence.cluster_id, sequence.prompt_ids, sequence.output_ids) == (
        "a",
        "s",
        (1, 2),
        (7,),
    )


def test_an_answer_of_unknown_tokens_is_left_out() -> None:
    rows = [row("a", ids=()), row("c")]
    assert [s.request_id for s in answer_sequences(PLAN, pa.Table.from_pylist(rows), "fp16")] == ["c"]


class WordLengths:
    """Token N is a word of N characters."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        return [1] * add_special_tokens + [len(word) for word in text.split()]


def test_a_text_whose_tokens_the_server_does_not_send_is_tokenized_again() -> None:
    rows = [row("a", ids=()), row("b", ids=()), row("c")]
    sequences = answer_sequences(PLAN, pa.Table.from_pylist(rows), "fp16", WordLengths())  # type: ignore[arg-type]  # the part that is used
    assert {s.request_id: s.output_ids for s in sequences} == {"a": (2, 2, 2), "c": (7,)}
