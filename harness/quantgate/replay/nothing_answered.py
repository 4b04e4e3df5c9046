"""A replay in which no server answered anything is no measurement: more of it would bring no more evidence."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from quantgate_engine.errors import RunError


def refuse_nothing_answered(requests: pa.Table) -> None:
    """Raises RunError, with the commonest cause, where every request of every arm failed or was refused.

    `requests` has the schema of the store. A request whose client left, as planned or out of patience, was served as
    far as that goes: unless the client waited in vain for the first token.
    """
    rows = requests.select(["status", "abort_cause", "output_tokens", "error"]).to_pylist()
    causes = [_cause(row["status"], row["abort_cause"], row["output_tokens"], row["error"]) for row in rows]
    failures = Counter(cause for cause in causes if cause is not None)
    if not rows or failures.total() < len(rows):
        return
    commonest, times = failures.most_common(1)[0]
    raise RunError(
        f"None of the {len(rows):,} requests was answered, on any arm; the commonest cause ({times:,} of them): "
        f"{commonest.rstrip('.')}."
    )


def _cause(status: str, abort_cause: str | None, output_tokens: int, error: str | None) -> str | None:
    if status in ("failed", "rejected"):
        return error or f"the request was {status}"
    if status == "aborted" and abort_cause == "timeout" and output_tokens == 0:
        return "no token came before the client's patience ended (request_timeout_s, --request-timeout)"
    return None
