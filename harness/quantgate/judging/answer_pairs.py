"""The answers of a stored run that a judge or a person can compare: the same request in the same pass on two arms."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quantgate.judging.live_history import later_turns, left_out_words
from quantgate.judging.pair_verdicts import ItemKey, Order, PairKey
from quantgate.store.run_folder import LoadedRun
from quantgate_engine.errors import BaselineError, ConfigurationError

_COLUMNS = [
    "arm_id", "request_id", "pass_index", "slo_class", "session_id", "tags", "status", "prompt_text", "output_text"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """One request and what the baseline and another arm answered. `stratum` groups requests of one kind."""

    arm_id: str
    request_id: str
    pass_index: int
    cluster: str
    stratum: tuple[str, ...]
    request: str
    baseline: str
    other: str

    @property
    def key(self) -> PairKey:
        return self.arm_id, self.request_id, self.pass_index

    @property
    def identical(self) -> bool:
        return self.baseline == self.other

    def shown(self, order: Order) -> tuple[str, str]:
        """Answer 1 and answer 2."""
        return (self.baseline, self.other) if order == "baseline_first" else (self.other, self.baseline)

    def digest(self) -> str:
        """Hash of the three texts, the same whichever arm is called the baseline."""
        texts = [self.request, *sorted((self.baseline, self.other))]
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def answer_pairs(run: LoadedRun) -> dict[ItemKey, list[AnswerPair]]:
    """Each request and pass that the baseline answered -> its pair with every other arm that answered it too.

    Requests that a task's checker has judged are left out, and so are later turns under live history. Raises
    BaselineError where the run has no baseline, and ConfigurationError where it kept no text or no other arm has
    answers.
    """
    baseline_id = _baseline_id(run)
    others = [arm.arm_id for arm in run.manifest.arms if arm.role != "baseline"]
    answers = _answers(run)
    if not any(row["output_text"] is not None for row in answers[baseline_id].values()):
        raise ConfigurationError(_without_text(run, bool(answers[baseline_id])))
    checked, later = _checked_items(run), later_turns(run)
    pairs = {
        item: [_pair(arm_id, row, answers[arm_id][item]) for arm_id in others if item in answers[arm_id]]
        for item, row in sorted(answers[baseline_id].items())
        if row["output_text"] is not None and item[0] not in checked and item not in later
    }
    found = {item: of_item for item, of_item in pairs.items() if of_item}
    if not found:
        raise ConfigurationError(
            " ".join(
                [
                    f"Run {run.manifest.run_id} has no request without a checker that {baseline_id} and another arm "
                    "both answered; there is nothing to compare.",
                    *left_out_words(len(later)),
                ]
            )
        )
    return found


def _baseline_id(run: LoadedRun) -> str:
    found = [arm.arm_id for arm in run.manifest.arms if arm.role == "baseline"]
    if len(found) != 1:
        raise BaselineError(
            f"Run {run.manifest.run_id} has {len(found)} baselines; expected exactly one to compare answers with."
        )
    return found[0]


def _answers(run: LoadedRun) -> Mapping[str, dict[ItemKey, dict[str, Any]]]:
    """Arm -> (request, pass) -> its row, for the requests that finished."""
    found: dict[str, dict[ItemKey, dict[str, Any]]] = defaultdict(dict)
    for row in run.requests.select(_COLUMNS).to_pylist():
        if row["status"] == "finished":
            found[row["arm_id"]][row["request_id"], row["pass_index"]] = row
    return found


def _without_text(run: LoadedRun, any_finished: bool) -> str:
    if not any_finished:
        return f"The baseline of run {run.manifest.run_id} finished no request; there is no answer to compare."
    return (
        f"Run {run.manifest.run_id} was stored without text (--no-text), so that there is no answer to compare; run "
        "again without --no-text to have answers judged or reviewed."
    )


def _checked_items(run: LoadedRun) -> set[str]:
    tiers, items = (run.quality.column(name).to_pylist() for name in ("tier", "item_id"))
    return {str(item) for tier, item in zip(tiers, items, strict=True) if tier == "task"}


def _pair(arm_id: str, baseline: dict[str, Any], other: dict[str, Any]) -> AnswerPair:
    return AnswerPair(
        arm_id=arm_id,
        request_id=baseline["request_id"],
        pass_index=baseline["pass_index"],
        cluster=baseline["session_id"] or baseline["request_id"],
        stratum=(baseline["slo_class"], *sorted(baseline["tags"])),
        request=baseline["prompt_text"] or "",
        baseline=baseline["output_text"],
        other=other["output_text"] or "",
    )
