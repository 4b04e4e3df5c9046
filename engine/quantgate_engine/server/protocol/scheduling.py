"""The fields that say how a request is to be scheduled; they change no answer."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from quantgate_engine.request_terms import RequestTerms

Name = Annotated[str, Field(min_length=1, max_length=256)]


class SchedulingFields(BaseModel):
    """Fields of the request's terms. cache_salt is vLLM's too, the others are this server's own.

    slo_class: one of the engine's classes; absent: the most urgent one. session_id: the conversation it is a turn of.
    timeout_s: seconds from its arrival after which it is given up, within the server's own limit. cache_salt: only
    requests with the same salt share prefixes.
    """

    slo_class: Name | None = None
    session_id: Name | None = None
    timeout_s: float | None = Field(default=None, gt=0)
    cache_salt: Name | None = None

    def terms(self, limit_s: float, fork_of: str | None, turn_starts: tuple[int, ...]) -> RequestTerms:
        """limit_s: the longest time that the server gives any request; the others: see `RequestTerms`."""
        return RequestTerms(
            slo_class=self.slo_class,
            timeout_s=limit_s if self.timeout_s is None else min(self.timeout_s, limit_s),
            session_id=self.session_id,
            fork_of=fork_of,
            turn_starts=turn_starts,
            cache_salt=self.cache_salt or "",
        )
