"""How long a judge's server is waited for before the same question is asked again."""

from __future__ import annotations

from quantgate.targets.openai.errors import EndpointError

WAITS_S = (1.0, 4.0, 15.0)
"""Before each further call for the same question, unless the server says how long it wants to be left alone."""
LONGEST_WAIT_S = 60.0
_WORTH_ANOTHER_CALL = frozenset({"connect", "status_429", "status_5xx"})


def worth_another_call(error: EndpointError) -> bool:
    return error.kind in _WORTH_ANOTHER_CALL and not asks_for_too_long(error)


def asks_for_too_long(error: EndpointError) -> bool:
    """Whether the server wants to be left alone for longer than a session waits: no other call would fare better."""
    return error.retry_after_s is not None and error.retry_after_s > LONGEST_WAIT_S


def words_of(error: EndpointError) -> str:
    """What the server said, and the wait that it asked for where that is too long."""
    if not asks_for_too_long(error):
        return str(error)
    return (
        f"{error} It asks to be left alone for {error.retry_after_s:,.0f} s (Retry-After), and judging waits at most "
        f"{LONGEST_WAIT_S:.0f} s; judge again after that."
    )


def wait_words(error: EndpointError, wait_s: float) -> str:
    asked = ", as the server asks" if error.retry_after_s else ""
    return f"waiting {wait_s:g} s before the next call{asked}: {error}"
