"""Requests whose answers do not compare, because the arms were not asked the same."""

from __future__ import annotations

from quantgate.judging.pair_verdicts import ItemKey
from quantgate.store.run_folder import LoadedRun


def later_turns(run: LoadedRun) -> frozenset[ItemKey]:
    """The later turns of sessions under live history: their prompts hold what each arm itself answered before.

    A judge would see the baseline's conversation alone, and one lost turn would count again in every turn behind it.
    Empty under recorded history.
    """
    workload = run.manifest.workload
    if workload is None or workload.history == "recorded":
        return frozenset()
    names = ("request_id", "pass_index", "turn")
    columns = (run.requests.column(name).to_pylist() for name in names)
    return frozenset((request, number) for request, number, turn in zip(*columns, strict=True) if turn > 1)


def left_out_words(later: int) -> list[str]:
    """A line for the user, or none where nothing is left out."""
    if not later:
        return []
    return [
        f"Later turns of sessions that are left out: {later:,}; under history live their prompts hold each arm's own "
        "answers, so that what is answered to them does not compare."
    ]
