"""Writes our own format: records that read back as they are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from quantgate.store.atomic_file import write_atomically
from quantgate.traces.native_row import NANOSECONDS_PER_SECOND, NativeRow
from quantgate.traces.record import TraceRecord
from quantgate.traces.source_text import LONGEST_ROW_BYTES
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown


def write_native(path: Path, records: Iterable[TraceRecord]) -> None:
    """One line a record; the file is there whole or not at all.

    Raises ConfigurationError for a record that the format cannot hold, RunError where the system refuses.
    """

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            for record in records:
                file.write(native_line(record) + "\n")

    write_atomically(path, write)


def native_line(record: TraceRecord) -> str:
    """The record as a row that reads back as the same one, times to the nanosecond in a trace of up to 97 days.

    Beyond, seconds written as a number keep a tenth of a microsecond, and their order. Raises ConfigurationError for a
    record that no row of ours can be, such as one without a prompt.
    """
    try:
        row = NativeRow.model_validate(_fields(record))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(map(str, problem["loc"]))
        raise ConfigurationError(
            f"Request {shown(record.request_id)} cannot be written as a row of our own format"
            f"{f', field {place}' if place else ''}: {problem['msg']}."
        ) from None
    fields = row.model_dump(by_alias=True, exclude_defaults=True)
    line = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    if len(line.encode()) > LONGEST_ROW_BYTES:
        raise ConfigurationError(
            f"Request {shown(record.request_id)} cannot be written: its row is longer than the "
            f"{LONGEST_ROW_BYTES // 1_000_000} MB that are read again; drop long prompts with --max-prompt-tokens."
        )
    return line


def _fields(record: TraceRecord) -> dict[str, Any]:
    has_prompt = record.has_text or record.prompt_token_ids is not None
    blocks = record.prompt_blocks
    return {
        "id": record.request_id,
        "offset": _seconds(record.scheduled_ns),
        "messages": None
        if record.messages is None
        else tuple({"role": message.role, "content": message.content} for message in record.messages),
        "prompt": record.prompt_text,
        "prompt_tokens": None if has_prompt else record.prompt_token_count,
        "prompt_blocks": None if blocks is None else blocks.ids,
        "block_tokens": None if blocks is None else blocks.block_tokens,
        "prompt_token_ids": record.prompt_token_ids,
        "recorded_prompt_tokens": record.prompt_token_count if has_prompt else None,
        "max_tokens": record.max_tokens,
        "limit_tokens": record.limit_tokens,
        "class": record.slo_class,
        "session": record.session_id,
        "turn": record.turn,
        "think_time": _seconds(record.think_time_ns),
        "tags": record.tags,
        "checker": record.checker,
        "disconnect_after": record.disconnect_after_tokens,
        "disconnect_after_s": None if record.disconnect_after_ns is None else _seconds(record.disconnect_after_ns),
        "read_tokens_per_s": record.read_tokens_per_s,
    }


def _seconds(nanoseconds: int) -> float:
    """Python divides integers to the nearest float."""
    return nanoseconds / NANOSECONDS_PER_SECOND
