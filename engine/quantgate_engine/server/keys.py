"""Who may use the server."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from quantgate_engine.server.api_error import ApiError


class ApiKeys:
    """The keys that are let in, as UTF-8; with none, everybody is."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(key.encode() for key in keys)

    def caller(self, authorization: str | None) -> int:
        """The number of the caller's key (0 where there are none); raises ApiError 401 for a wrong or missing one."""
        if not self._keys:
            return 0
        scheme, _, word = (authorization or "").partition(" ")
        # The framework reads headers as Latin-1, whatever the client meant: this gives back the bytes that were sent.
        given = word.encode("latin-1").strip()
        # Every key is compared, each in constant time: how long it takes tells nothing about them.
        same = [hmac.compare_digest(key, given) for key in self._keys]
        if scheme.lower() != "bearer" or not any(same):
            raise ApiError(
                401,
                "The API key is missing or wrong; send `Authorization: Bearer KEY` with a key of this server.",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return same.index(True)
