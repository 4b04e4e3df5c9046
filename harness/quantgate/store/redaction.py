"""Which columns hold what users and models wrote, and how a table loses them (`--no-text`)."""

from __future__ import annotations

import pyarrow as pa

TEXT_COLUMNS: dict[str, tuple[str, ...]] = {
    # Token ids are text to anyone who has the tokenizer.
    # A server's error message may quote the prompt; what kind of error it was stays in `error_kind`.
    "requests": ("prompt_text", "output_text", "reasoning_text", "output_token_ids", "error"),
    "steps": (),
    "quality": ("output_text", "expected_text", "detail"),
    "server_metrics": (),
    "judgements": ("reason",),
}


def without_text(table_name: str, table: pa.Table) -> pa.Table:
    """The table with its text columns emptied: null, or an empty list where the column may not be null."""
    for name in TEXT_COLUMNS[table_name]:
        index = table.schema.get_field_index(name)
        field = table.schema.field(index)
        empty = pa.array([None if field.nullable else []] * table.num_rows, type=field.type)
        table = table.set_column(index, field, empty)
    return table
