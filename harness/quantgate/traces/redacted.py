"""Takes known kinds of personal data out of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from quantgate.privacy.redactor import Redactor
from quantgate.traces.record import Message, TraceRecord
from quantgate.traces.transform_record import TransformRecord


def redact_records(records: Sequence[TraceRecord]) -> tuple[list[TraceRecord], TransformRecord]:
    """The records with placeholders in prompts, tags and ids; the step counts, by kind, the places that were replaced.

    Each session, and each request outside one, has placeholders of its own, so that they tell nothing across sessions.
    A text that comes again in a session, as history does, counts once.
    """
    of_session: dict[str, Redactor] = {}
    counts: Counter[str] = Counter()
    redacted = []
    for position, record in enumerate(records, start=1):
        redactor = Redactor() if record.session_id is None else of_session.setdefault(record.session_id, Redactor())
        before = redactor.found.copy()
        redacted.append(_redacted(record, redactor, position))
        counts += redactor.found - before
    names = {name: f"session-{number}" for number, name in enumerate(of_session, start=1) if _is_personal(name)}
    redacted = [
        replace(record, session_id=names.get(record.session_id or "", record.session_id)) for record in redacted
    ]
    touched = sum(new != old for new, old in zip(redacted, records, strict=True))
    step = TransformRecord("redact", {"found": dict(sorted(counts.items()))}, len(records), len(records), touched)
    return redacted, step


def _redacted(record: TraceRecord, redactor: Redactor, position: int) -> TraceRecord:
    return replace(
        record,
        # A name is replaced whole, so that it stays unlike every other one.
        request_id=f"request-{position}" if _is_personal(record.request_id) else record.request_id,
        messages=record.messages
        and tuple(Message(message.role, redactor.redact(message.content)) for message in record.messages),
        prompt_text=record.prompt_text and redactor.redact(record.prompt_text),
        tags=tuple(redactor.redact(tag) for tag in record.tags),
    )


def _is_personal(name: str) -> bool:
    return Redactor().redact(name) != name
