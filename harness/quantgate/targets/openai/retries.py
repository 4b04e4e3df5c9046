"""When a request is sent again, and after what wait. None of it is hidden: attempts are logged, waits are in TTFT."""

from __future__ import annotations

from quantgate.targets.openai.errors import EndpointError

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 60.0
_PASSING_KINDS = frozenset({"connect", "status_429", "status_5xx"})


def may_pass(error: EndpointError) -> bool:
    """Whether the same request may do better later. An answer that had begun is never asked for again."""
    return error.kind in _PASSING_KINDS


def wait_before_retry_s(error: EndpointError, attempts: int) -> float:
    """What the server asked for, else half a second, doubled with each attempt."""
    wanted = error.retry_after_s if error.retry_after_s is not None else _FIRST_WAIT_S * 2 ** (attempts - 1)
    return min(wanted, _LONGEST_WAIT_S)
