"""What a client is told when its request did not come to its end."""

from __future__ import annotations

from quantgate_engine.outputs import StreamEnd
from quantgate_engine.request import AbortCause
from quantgate_engine.server.api_error import ApiError, unavailable

_RETRY_AFTER_S = 1.0

_TIMEOUT = "timeout"

_ABORTED = {
    AbortCause.TIMEOUT.value: ("The request took longer than this server allows and was given up.", _TIMEOUT),
    AbortCause.SHUTDOWN.value: ("The server stopped before the request came to its end.", "shutting_down"),
    AbortCause.BACKPRESSURE.value: ("The answer was read too slowly and was given up.", "slow_reader"),
}


def failure_of(end: StreamEnd, own_limit_s: float | None = None) -> ApiError:
    """The error of a stream that did not finish. own_limit_s: the client's own limit, where that one held."""
    if end.status == "rejected":
        # What could never run was refused before it reached the engine; this is want of room, which passes.
        return unavailable(end.error or "The engine has no room for the request.", "no_room", _RETRY_AFTER_S)
    if end.status == "failed":
        return ApiError(500, f"The engine failed on this request: {end.error}.", error_type="server_error")
    if end.abort_cause == AbortCause.TIMEOUT.value and own_limit_s is not None:
        return ApiError(
            408,
            f"The request took longer than its own timeout_s of {own_limit_s:g} s and was given up.",
            param="timeout_s",
            code=_TIMEOUT,
        )
    message, code = _ABORTED.get(end.abort_cause or "", ("The request was given up.", "cancelled"))
    return unavailable(message, code)
