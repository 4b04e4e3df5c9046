"""Bounds of an answer that is read to its end before anything is done with it: a server may never come to one."""

from __future__ import annotations

from quantgate.targets.openai.errors import EndpointError
from quantgate.targets.openai.settings import EndpointSettings
from quantgate.targets.openai.transport import Answer

MOST_BYTES = 64 << 20
"""Several times the largest answer of a probe, log-probs of a whole vocabulary; a page that never ends stays far below
what the memory holds."""
_FACTS_SECONDS = 30.0
"""For a GET, which computes nothing: a list of models, metrics."""


class EndlessAnswerError(EndpointError):
    """An answer that had not come to its end when its time or its size ran out."""

    def __init__(self, url: str, after: str, advice: str) -> None:
        super().__init__(
            f"{url}: the answer had not come to its end after {after}; {advice}.",
            "timeout",
            seen=f"no end after {after}",
        )


def longest_seconds(method: str, settings: EndpointSettings) -> float:
    """From the connection to the answer's last byte. Servers send an answer that is no stream when it is complete, so
    that the longest silence inside it, and the time to connect, are all that it may take."""
    answering = settings.read_timeout_s if method == "POST" else min(settings.read_timeout_s, _FACTS_SECONDS)
    return settings.connect_timeout_s + answering


def took_too_long(url: str, method: str, seconds: float) -> EndlessAnswerError:
    more_time = ", or allow more time (read_timeout_s; of a judge, --call-timeout)" if method == "POST" else ""
    return EndlessAnswerError(url, f"{seconds:g} s", f"look at the server{more_time}")


async def read_whole(url: str, answer: Answer, most_bytes: int) -> bytes:
    """The body. Raises EndlessAnswerError where it is longer, TransportError where it breaks off."""
    body = bytearray()
    async for part in answer.body():
        body += part.data
        if len(body) > most_bytes:
            raise EndlessAnswerError(
                url, f"{most_bytes >> 20} MiB", "check that the URL is that of an OpenAI-compatible server"
            )
    return bytes(body)
