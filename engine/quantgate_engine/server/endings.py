"""What a client is told when its request did not come to its end."""

from __future__ import annotations

from quantgate_engine.outputs import StreamEnd
from quantgate_engine.request import AbortCause
from quantgate_engine.server.api_error import ApiError, bad_request, unavailable

_ABORTED = {
    AbortCause.TIMEOUT.value: ("The request took longer than this server allows and was given up.", "timeout"),
    AbortCause.SHUTDOWN.value: ("The server stopped before the request came to its end.", "shutting_down"),
    AbortCause.BACKPRESSURE.value: ("The answer was read too slowly and was given up.", "slow_reader"),
}


def failure_of(end: StreamEnd) -> ApiError:
    """The error of a stream that did not finish."""
    if end.status == "rejected":
        return bad_request(end.error or "The request can never run.")
    if end.status == "failed":
        return ApiError(500, f"The engine failed on this request: {end.error}.", error_type="server_error")
    message, code = _ABORTED.get(end.abort_cause or "", ("The request was given up.", "cancelled"))
    return unavailable(message, code)
