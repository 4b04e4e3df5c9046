"""What a run without text (`--no-text`) leaves out: the one place that says which stored fields hold text.

Text is what users and models wrote, and whatever may quote it. Everything that is written into a run's folder goes
through `RunFolder`, which asks here; verdict and report are made from what the folder holds.
"""

from __future__ import annotations

import pyarrow as pa

from quantgate.store.manifest import RunManifest

TEXT_COLUMNS: dict[str, tuple[str, ...]] = {
    # Token ids are text to anyone who has the tokenizer.
    # A server's error message may quote the prompt; what kind of error it was stays in `error_kind`.
    "requests": ("prompt_text", "output_text", "reasoning_text", "output_token_ids", "error"),
    "steps": (),
    "quality": ("output_text", "expected_text", "detail"),
    "server_metrics": (),
    "judgements": ("reason",),
}

INTERRUPTED = "interrupted"
"""The one failure whose words quote nobody."""

FAILURE_NOT_KEPT = "The reason was printed when the run ended; it may quote a prompt, so it is not kept (--no-text)."


def without_text(table_name: str, table: pa.Table) -> pa.Table:
    """The table with its text columns emptied: null, or an empty list where the column may not be null."""
    for name in TEXT_COLUMNS[table_name]:
        index = table.schema.get_field_index(name)
        field = table.schema.field(index)
        empty = pa.array([None if field.nullable else []] * table.num_rows, type=field.type)
        table = table.set_column(index, field, empty)
    return table


def manifest_without_text(manifest: RunManifest) -> RunManifest:
    """The manifest without the words of errors."""
    tiers = [status.model_copy(update={"first_failure": ""}) for status in manifest.quality_tiers]
    spoken = manifest.failure not in (None, INTERRUPTED)
    return manifest.model_copy(
        update={"quality_tiers": tiers, "failure": FAILURE_NOT_KEPT if spoken else manifest.failure}
    )
