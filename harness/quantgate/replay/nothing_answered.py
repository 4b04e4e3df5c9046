"""A replay in which no server answered anything is no measurement: more of it would bring no more evidence."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from quantgate_engine.counted import counted
from quantgate_engine.errors import RunError

_PATIENCE = "no token came before the client's patience ended (request_timeout_s, --request-timeout)"
_ENGINES_OWN_LIMIT = "no token came before the engine gave the request up (timeouts.request_s)"


def refuse_nothing_answered(requests: pa.Table, client_timeout_s: float | None) -> None:
    """Raises RunError, with the commonest cause, where every request of every arm failed or was refused.

    `requests` has the schema of the store. client_timeout_s: how long clients waited; it holds for the bundled engine
    too, in place of its own limit, so that a request can run into that one only where clients wait for ever (None).
    A request whose client left, as planned or out of patience, was served as far as that goes: unless the client waited
    in vain for the first token.
    """
    rows = requests.select(["status", "abort_cause", "output_tokens", "error"]).to_pylist()
    too_late = _ENGINES_OWN_LIMIT if client_timeout_s is None else _PATIENCE
    causes = [_cause(row["status"], row["abort_cause"], row["output_tokens"], row["error"], too_late) for row in rows]
    failures = Counter(cause for cause in causes if cause is not None)
    if not rows or failures.total() < len(rows):
        return
    commonest, times = failures.most_common(1)[0]
    raise RunError(
        f"None of the {counted(len(rows), 'request')} was answered, on any arm; the commonest cause ({times:,} of "
        f"them): {commonest.rstrip('.')}."
    )


def _cause(status: str, abort_cause: str | None, output_tokens: int, error: str | None, too_late: str) -> str | None:
    if status in ("failed", "rejected"):
        return error or f"the request was {status}"
    if status == "aborted" and abort_cause == "timeout" and output_tokens == 0:
        return too_late
    return None
