"""Takes a filled-in review queue back: checks that it is this run's, unchanged, and new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quantgate.judging.review.queue_file import FiledItem
from quantgate.judging.review.review_key import TEXT_FIELDS, KeyEntry, ReviewKey, text_hash
from quantgate.judging.rows import Row, human_row, key_of
from quantgate_engine.errors import ConfigurationError


@dataclass(slots=True)
class ImportedReviews:
    """rows: the whole judgements table with the new answers. Counts are of items of the file."""

    rows: list[Row] = field(default_factory=list)
    new: int = 0
    unchanged: int = 0
    open: int = 0


def import_reviews(
    run_id: str, key: ReviewKey, items: Sequence[FiledItem], rows: Sequence[Row], *, reviewer: str, replace: bool
) -> ImportedReviews:
    """`run_id`: the one that the file names. `rows`: the judgements table as it is.

    Raises ConfigurationError, and changes nothing, for a queue of another run, an unknown or repeated id, a text that
    was edited, and an answer that differs from one imported before (unless `replace`).
    """
    if run_id != key.run_id:
        raise ConfigurationError(
            f"This queue is of run {run_id}, not of {key.run_id}; import it into the run that it was exported from."
        )
    answered = {key_of(row): row for row in rows if row["source"] == "human" and row["choice"] != "open"}
    imported = ImportedReviews()
    new_rows: dict[tuple[str, str, int], Row] = {}
    seen: dict[str, str] = {}
    for filed in items:
        entry = _checked(filed, key, seen)
        if filed.item.choice is None:
            imported.open += 1
            continue
        before = answered.get(entry.pair_key)
        if before is not None and (before["order"], before["choice"]) == (entry.order, filed.item.choice):
            imported.unchanged += 1
            continue
        if before is not None and not replace:
            raise ConfigurationError(
                f"{filed.place}, field better: item {filed.item.id} was imported before as {before['choice']!r} and "
                f"now says {filed.item.choice!r}; add --replace to let the new answer stand."
            )
        imported.new += 1
        note = filed.item.note or ""
        new_rows[entry.pair_key] = human_row(entry, entry.order, filed.item.choice, reviewer=reviewer, note=note)
    kept = [row for row in rows if row["source"] != "human" or key_of(row) not in new_rows]
    imported.rows = [*kept, *new_rows.values()]
    return imported


def _checked(filed: FiledItem, key: ReviewKey, seen: dict[str, str]) -> KeyEntry:
    """The key's entry of an item that may be imported; notes its id in `seen`."""
    item, place = filed.item, filed.place
    entry = key.entries.get(item.id)
    if entry is None:
        raise ConfigurationError(
            f"{place}, field id: {item.id!r} is no item of a queue exported from run {key.run_id}; restore the id, or "
            "remove the item."
        )
    if item.id in seen:
        raise ConfigurationError(f"{place}, field id: {item.id!r} stands here again, after {seen[item.id]}; keep one.")
    seen[item.id] = place
    for name in TEXT_FIELDS:
        if text_hash(getattr(item, name)) != entry.text_sha256[name]:
            raise ConfigurationError(
                f"{place}, field {name}: the text of item {item.id} is not the one that was exported; restore it (only "
                "better and note may be changed)."
            )
    return entry
