"""Sends the probe's requests: a refusal is a finding, a server that cannot be asked at all is the end."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from quantgate.capabilities.server_calls import ServerCalls
from quantgate.targets.openai.errors import EndpointError
from quantgate.targets.openai.settings import EndpointSettings

Answer = TypeVar("Answer")
TokensOrText = str | Sequence[int]

_KEY_REFUSED = (401, 403)
_RATE_LIMITED = 429


class Asking:
    """One server under one model id.

    requests: how many were sent. notes: what no answer told. failures: the last failure of each question.
    """

    def __init__(self, calls: ServerCalls, settings: EndpointSettings) -> None:
        self.calls = calls
        self.settings = settings
        self.model = settings.model or ""
        self.requests = 0
        self.notes: list[str] = []
        self.failures: dict[str, EndpointError] = {}

    async def completion(self, what: str, prompt: TokensOrText, **fields: Any) -> Any:
        """The answer of /v1/completions; None where the server refuses. `what` is asked about, for the notes."""
        text_or_ids = prompt if isinstance(prompt, str) else list(prompt)
        body = self.body(prompt=text_or_ids, **fields)
        return await self.tried(what, self.calls.post_json("/v1/completions", body), is_generation=True)

    async def chat(self, what: str, content: str, **fields: Any) -> Any:
        """The answer of /v1/chat/completions to one user message; None where the server refuses."""
        body = self.body(messages=[{"role": "user", "content": content}], **fields)
        return await self.tried(what, self.calls.post_json("/v1/chat/completions", body), is_generation=True)

    def body(self, **fields: Any) -> dict[str, Any]:
        """The user's extra fields take part: a server may need them to answer at all."""
        extra = {name: value for name, value in self.settings.extra_body.items() if value is not None}
        return {**extra, "model": self.model, **fields}

    async def tried(self, what: str, call: Awaitable[Answer], *, is_generation: bool = False) -> Answer | None:
        """None where the server refuses.

        Raises EndpointError where it cannot be reached. A replay needs what `is_generation` is about: there a refused
        key is raised too, and a short answer that does not come, since each further question would be waited for as
        long.
        """
        self.requests += 1
        try:
            return await call
        except EndpointError as error:
            hopeless = error.status in _KEY_REFUSED or error.kind == "timeout"
            if error.kind == "connect" or (is_generation and hopeless):
                raise
            self.failures[what] = error
            if not is_refusal(error):
                self.notes.append(f"{what}: not told ({str(error).rstrip('.')})")
            return None


def is_refusal(error: EndpointError) -> bool:
    """Whether the server understood and said no (or answered in some other form), rather than failed to answer."""
    if error.status is None:
        return error.kind == "malformed_event"
    return error.status < 500 and error.status != _RATE_LIMITED
